/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mappable_daemon.h - which remap-daemon serves a pod's directory of a volume: that of another pod of this node that has
 * the same volume, or a new one.
 *
 * Pods share one where their options name the same, it serves the same directory of the same filesystem, and both or
 * neither may write: what is read-only is so behind the daemon, too, as are atimes. All else is of the mount, which each
 * has for itself. So the memory of many pods is that of one, and what one of them changes is what the others see, whatever
 * the kernel remembers ("cache").
 */
#ifndef FLEXGRAFT_VOLUME_MAPPABLE_DAEMON_H
#define FLEXGRAFT_VOLUME_MAPPABLE_DAEMON_H

#include <stdint.h>

#include "base/error.h"
#include "mount/detached.h"
#include "volume/call.h"
#include "volume/mount_dir.h"

/* volume_mappable_source() - of what the options name, for the record; 0: nothing of it is served by a remap-daemon. */
uint64_t volume_mappable_source(const struct volume_call *call);

/*
 * volume_mappable_mount() - a mount that can be id-mapped, of what source_fd is a detached mount of.
 *
 * Runs in: a worker on the node.
 * Takes:   dir, where it is to be; attributes, of the volume; those of the source's mount that a program could not do without hold, too, but for
 *          what they clear.
 * Gives:   ret_served, for the record.
 * Returns: its descriptor, owned by the caller.
 * Errors:  EBUSY nobody but the volume's pods changes its files ("cache": "always"), and another of them cannot share the
 *          daemon; those of id_mappable_serve() and detached_mount_set().
 */
int volume_mappable_mount(const struct volume_call *call, int source_fd, const char *dir,
                          const struct mount_attributes *attributes, struct volume_served *ret_served,
                          struct error *error);

#endif
