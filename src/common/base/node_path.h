/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_path.h - a path of the node, opened once, through no symbolic link but root's.
 */
#ifndef FLEXGRAFT_BASE_NODE_PATH_H
#define FLEXGRAFT_BASE_NODE_PATH_H

#include "base/error.h"

/*
 * node_path_open() - open a path with O_PATH.
 *
 * Every symbolic link on the path must belong to root, stay in its own directory (or be in / or /var), and not be a
 * magic link of the kernel. Otherwise a container that may write to a volume could lead from there to any directory of
 * the node; and below /proc/PID/root a container's absolute links would lead into the node's tree.
 *
 * Runs in: the node's mount namespace.
 * Takes:   path, absolute.
 * Gives:   ret_path, of PATH_MAX bytes: the path with its links and ".." resolved, also where opening fails.
 * Returns: the descriptor, owned by the caller.
 * Errors:  ENOENT, ENOTDIR, ...; ELOOP a link that is not followed; the error's reason names it.
 */
int node_path_open(const char *path, char *ret_path, struct error *error);

/*
 * node_path_open_mounted() - likewise; of an automount (autofs) what is mounted there when it is used, which is waited for.
 */
int node_path_open_mounted(const char *path, char *ret_path, struct error *error);

#endif
