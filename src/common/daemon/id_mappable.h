/* SPDX-License-Identifier: Apache-2.0 */
/*
 * id_mappable.h - a mount that a container's runtime can id-map, of a filesystem that cannot be id-mapped.
 *
 * A runtime id-maps the volumes of a container that has a user namespace (mount_setattr with MOUNT_ATTR_IDMAP), and fails
 * where the filesystem refuses. This is where it is found out whether one does, and whether remap-daemon may serve it.
 */
#ifndef FLEXGRAFT_DAEMON_ID_MAPPABLE_H
#define FLEXGRAFT_DAEMON_ID_MAPPABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "daemon/remap.h"

/*
 * id_mappable_begin() - before privileges_drop(): the helper process, and a user namespace to try with. Where there can be
 * none id_mappable_try() says why.
 */
int id_mappable_begin(int argc, char **argv, struct error *error);

/*
 * id_mappable_try() - map the ids of a mount as a runtime would.
 *
 * Takes:   mount_fd, of a detached mount.
 * Returns: 1 the kernel refuses, and the mount is as it was; 0 it is mapped now, and good for nothing else.
 * Errors:  ENOSYS id_mappable_begin() was not called; those of detached_mount_map() but EINVAL.
 */
int id_mappable_try(int mount_fd, const char *source, bool recursive, struct error *error);

/*
 * id_mappable_serve() - a mount that can be id-mapped, of one that cannot be: remap_mount_mappable() of it, if it is of a
 * filesystem for files of users.
 *
 * Takes:   source, whose mount has the attributes, and whose state is not looked at; state_dir, of the configuration.
 *          noexec and nosymfollow of the source's mount hold without being among the attributes.
 * Gives:   ret_key, for id_mappable_is_served().
 * Returns: the detached mount's descriptor, owned by the caller.
 * Errors:  EOPNOTSUPP a filesystem that remap-daemon does not serve; those of remap_mount_mappable().
 */
int id_mappable_serve(struct remap_source source, uint64_t attributes, const char *state_dir, uint64_t *ret_key,
                      struct error *error);

/* id_mappable_cache() - how what is mounted on a directory was asked for. A daemon of an older version does not say. */
enum remap_cache id_mappable_cache(const char *dir);

/*
 * id_mappable_is_served() - whether the remap-daemon with that key runs; key 0: there is none, and none is needed. Returns
 * 1 or 0, or negative errno: it cannot be found out.
 */
int id_mappable_is_served(const char *state_dir, uint64_t key, struct error *error);

#endif
