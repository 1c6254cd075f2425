/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_path.h - a path of the node, opened once, and never through a link that is not root's.
 */
#ifndef FLEXGRAFT_BASE_NODE_PATH_H
#define FLEXGRAFT_BASE_NODE_PATH_H

#include "base/error.h"

/*
 * node_path_open() - O_PATH on what is there.
 *
 * Every symbolic link on the way must belong to root, stay in the directory it lies in (or lie in / or /var), and be no
 * magic link of the kernel's: a container that may write to a volume could lead us from there to any directory of the
 * node, and beneath /proc/PID/root a container's absolute links would lead into the node's tree.
 *
 * Runs in: the node's mount namespace.
 * Takes:   path, absolute.
 * Gives:   ret_path, of PATH_MAX bytes: the path with its links and ".." resolved, also where opening fails.
 * Returns: the descriptor, owned by the caller.
 * Errors:  ENOENT, ENOTDIR, ...; ELOOP a link that is not followed, named in the error's reason.
 */
int node_path_open(const char *path, char *ret_path, struct error *error);

#endif
