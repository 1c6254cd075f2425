/* SPDX-License-Identifier: Apache-2.0 */
/*
 * user_namespace.h - the user namespace that a container's runtime created, and its map.
 *
 * A container may nest further user namespaces in it, with any map it likes: they say nothing about which ids on a disk
 * are the container's (docs/KERNEL.md#nested-user-namespaces).
 */
#ifndef FLEXGRAFT_CONTAINER_USER_NAMESPACE_H
#define FLEXGRAFT_CONTAINER_USER_NAMESPACE_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "process/id_ranges.h"

/*
 * user_namespace_outermost() - the ancestor of a user namespace, or itself, that is a child of this process's own.
 *
 * Runs in: the node's user namespace.
 * Takes:   fd, of a user namespace; closed and replaced by the ancestor's. With our own it stays as it is.
 * Gives:   ret_own, true: it is another one than ours; ret_owner, the user on the node who created it.
 * Errors:  EPERM it is not below ours; or negative errno. Fills no struct error.
 */
int user_namespace_outermost(int *fd, bool *ret_own, uid_t *ret_owner);

/*
 * user_namespace_owns() - whether this user on the node created the user namespace that owns another namespace, or the
 * one that it is nested in, below our own. Runs in: the node's user namespace.
 */
bool user_namespace_owns(uid_t user, int ns_fd);

/*
 * user_namespace_read() - the maps of a user namespace in ids of the node.
 *
 * Takes:   proc_fd, of a process that is in it or was: its files are read if it still is there. Otherwise a sealed child
 *          enters the namespace, and its files are read.
 * Needs:   CAP_SYS_ADMIN and CAP_SYS_PTRACE.
 * Returns: 0, or negative errno with the error filled.
 */
int user_namespace_read(int user_ns_fd, int proc_fd, const char *container, struct id_maps *ret_maps,
                        struct error *error);

#endif
