/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mappable_exchange.h - a volume's own mount on a pod's directory, which the pod's runtime cannot id-map, is exchanged for
 * one that it can: when the pod turns out to have a user namespace. The directory shows one or the other at every moment.
 *
 * The record first has both: the new mount as its own, and "replaces", the one that it had. Then the new one is put beneath
 * the old one, the old one is taken off, and "replaces" is forgotten. A call that was killed leaves one of three states,
 * which volume_mappable_settle() knows by what the directory shows, and whether the kernel has the new mount.
 */
#ifndef FLEXGRAFT_VOLUME_MAPPABLE_EXCHANGE_H
#define FLEXGRAFT_VOLUME_MAPPABLE_EXCHANGE_H

#include "base/error.h"
#include "volume/call.h"

/*
 * volume_mappable_settle() - end what a killed call began, or undo it where it had placed nothing, or the daemon of what it
 * placed has exited, if the directory of an entry shows one of its two mounts. With the volume's lock and its record, which is
 * written.
 *
 * Returns: 0.
 * Errors:  EBUSY something is mounted on the old mount; those of umount2(2) and of writing the record.
 */
int volume_mappable_settle(struct volume_call *call, struct mount_dir *place, struct error *error);

/*
 * volume_mappable_exchange() - do it, if the kernel refuses to id-map the entry's mount. What has a file open on the old
 * mount keeps it, and so does a container that has it already.
 *
 * Takes:   call, with the volume's lock and its record, which is written; try_only: only find out whether it would.
 * Needs:   CAP_SYS_ADMIN, and id_mappable_begin(). The filesystem is asked: a dead server keeps it waiting.
 * Returns: 1 it is exchanged, or would be; 0 the mount can be id-mapped.
 * Errors:  ENOSYS no FUSE mount can on this kernel; EBUSY something is mounted over it, or below; those of
 *          id_mappable_serve() and of on_node_place_beneath(): then all is as it was.
 */
int volume_mappable_exchange(struct volume_call *call, struct mount_dir *place, bool try_only, struct error *error);

/* volume_mappable_limit_starts() - remap_limit_starts(): who makes several exchanges is not to wait for one daemon. */
void volume_mappable_limit_starts(unsigned seconds);

#endif
