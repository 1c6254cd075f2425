/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container_origin.h - what the source in another container was mounted from, if flexgraft mounted and recorded it: the
 * original is not id-mapped, so a clone of it can be, also before Linux 6.15.
 */
#ifndef FLEXGRAFT_INJECT_KINDS_CONTAINER_ORIGIN_H
#define FLEXGRAFT_INJECT_KINDS_CONTAINER_ORIGIN_H

#include "base/error.h"
#include "inject/injection.h"
#include "mount/idmap.h"

/*
 * container_origin_clone() - a clone of that, id-mapped, with the restrictions that the source has in its container.
 *
 * Returns: a descriptor, owned by the caller.
 * Errors:  EOPNOTSUPP there is no record of it, or it is more than a directory or a disk; ESTALE the file there is
 *          another by now; those of superblock_create(), detached_mount_clone() and detached_mount_set().
 */
int container_origin_clone(struct injection *injection, const struct idmap *mapping, struct error *error);

/*
 * container_origin_restrict() - give a mount the restrictions that the source's has in its container. user_ns_fd: as
 * detached_mount_set() has it.
 */
int container_origin_restrict(const struct injection *injection, int mount_fd, int user_ns_fd, struct error *error);

#endif
