/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mappable.h - the option "idMappable": whether a pod gets a mount that its runtime can id-map, of a filesystem that the
 * kernel does not id-map. This is where it is decided (volume_mappable_serve()).
 *
 * A runtime id-maps the volumes of a pod with a user namespace ("hostUsers": false), and of no other. Such a mount is slower
 * than the filesystem itself, so other pods should not get it; and kubelet does not tell a driver which a pod is
 * (volume/pod_users.h). So a pod that "auto" did not know gets the volume's own mount, which waits for what kubelet notes: the
 * same call again, and volume-reconcile, exchange it then (volume/mappable_exchange.h).
 */
#ifndef FLEXGRAFT_VOLUME_MAPPABLE_H
#define FLEXGRAFT_VOLUME_MAPPABLE_H

#include <stdint.h>

#include "base/error.h"
#include "mount/detached.h"
#include "volume/call.h"
#include "volume/mount_dir.h"

typedef int volume_mount_function(struct volume_call *call, const struct mount_attributes *attributes,
                                  struct error *error);

/*
 * volume_mappable_serve() - where the pod is to have it, and the filesystem cannot be id-mapped, put a mount that can be in
 * place of *mount_fd.
 *
 * Takes:   again, which makes another such mount: one that could be id-mapped is of no use afterwards; attributes, which
 *          the mount has.
 * Gives:   ret_served, for the record of the mount.
 * Errors:  with "always", those of id_mappable_serve(). Otherwise the answer's message says why the pod does not have it.
 */
int volume_mappable_serve(struct volume_call *call, const struct mount_attributes *attributes,
                          volume_mount_function *again, int *mount_fd, struct volume_served *ret_served,
                          struct error *error);

/*
 * volume_mappable_again() - the volume is mounted on the directory of an entry already: where the pod is to have a mount that
 * its runtime can id-map, and has the volume's own, exchange it. Errors: as with volume_mappable_serve().
 */
int volume_mappable_again(struct volume_call *call, struct mount_dir *place, struct error *error);

/*
 * volume_mappable_check() - that what serves a directory of the volume runs. Errors: ENOTCONN it does not; others: it cannot
 * be found out.
 */
int volume_mappable_check(const struct volume_call *call, const struct mount_dir *place, struct error *error);

#endif
