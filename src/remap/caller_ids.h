/* SPDX-License-Identifier: Apache-2.0 */
/*
 * caller_ids.h - the ids of the process that makes a request, where mounts are id-mapped: the kernel leaves them out of all
 * requests but those that make an inode. /proc has them, and the map of the process's user namespace: uid N in a container
 * is uid N here, as in the requests that have ids.
 *
 * The thread that a request names waits for the answer in the kernel. Until then it neither ends, also when it is killed
 * (request_wait_answer() in fs/fuse/dev.c), nor changes its ids, which no other thread can change; and its number is no
 * other's. So what /proc says of it is of who asks. The kernel has checked permissions already, with the ids in the mount
 * that was used (default_permissions): these ones can only take away.
 *
 * Whose map counts: that of a user namespace which root on the node made, a container's, for processes in it. One that
 * another user made, who chose its map, says nothing: there a process has the ids of the node, as in the node's own.
 * In one that a container nested, whose map the container chose, a process has the ids that it has in the container.
 */
#ifndef FLEXGRAFT_REMAP_CALLER_IDS_H
#define FLEXGRAFT_REMAP_CALLER_IDS_H

#include <linux/fuse.h>
#include <sys/types.h>

#include "process/id_ranges.h"

#define CALLER_NOBODY 65534

/* caller_ids_put() - write them into a request that this thread answers; CALLER_NOBODY where they cannot be found. */
void caller_ids_put(struct fuse_in_header *header);

/* caller_ids_groups() - the map of the group ids of the thread that makes such a request; NULL: they cannot be found. */
const struct id_map *caller_ids_groups(pid_t thread);

#endif
