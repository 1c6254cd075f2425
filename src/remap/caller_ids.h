/* SPDX-License-Identifier: Apache-2.0 */
/*
 * caller_ids.h - the ids of the process that makes a request, where mounts are id-mapped: the kernel leaves them out of all
 * requests but those that make an inode. /proc has them, and the map of the process's user namespace: uid N in a container
 * is uid N here, as in the requests that have ids.
 *
 * The thread that a request names waits for the answer in the kernel. Until then it neither ends, also when it is killed
 * (request_wait_answer() in fs/fuse/dev.c), nor changes its ids, which no other thread can change; and its number is no
 * other's. So what /proc says of it is of who asks. Two kinds of requests are not waited for: direct writes that are
 * submitted (io_submit(2)), to a file that is open; and those that this daemon has given up (interrupts.h). The kernel has
 * checked permissions already, with the ids in the mount that was used (default_permissions): these ones can only take
 * away.
 *
 * Whose map counts: that of a user namespace which root on the node made, a container's, for processes in it. One that
 * another user made, who chose its map, says nothing: there a process has the ids of the node, as in the node's own. So
 * does one that maps the node's root: it is no container's, and root without CAP_SETUID may choose its map.
 * In one that a container nested, whose map the container chose, a process has the ids that it has in the container.
 *
 * They are those of the mount, if that is mapped as the user namespace is; a mount that is mapped in another way is not
 * known here. Needs CAP_SYS_PTRACE: a process that entered a container and has not executed a program there yet, as
 * runtimes start them, may be looked at by no other.
 */
#ifndef FLEXGRAFT_REMAP_CALLER_IDS_H
#define FLEXGRAFT_REMAP_CALLER_IDS_H

#include <stdbool.h>
#include <sys/types.h>

#include "process/id_ranges.h"

#define CALLER_NOBODY 65534
#define CALLER_GROUPS_MAX 1024 /* the kernel allows 65536: who has more is not found */

struct caller_ids {
        uid_t uid;
        gid_t gid;
        int group_count;
        gid_t groups[CALLER_GROUPS_MAX + 1]; /* supplementary; one more for caller_join() */
};

/* caller_ids_begin() - before a daemon's first thread. Returns 0 or negative errno. */
int caller_ids_begin(void);

/*
 * caller_ids_find() - the ids of a thread that waits; CALLER_NOBODY without groups where they cannot be found.
 * Returns: this thread's memory, until the next call.
 */
const struct caller_ids *caller_ids_find(pid_t thread);

/*
 * caller_ids_groups() - its supplementary groups alone, those that the map of its container has, as they are counted
 * there. Returns: likewise.
 */
struct caller_ids *caller_ids_groups(pid_t thread, const struct id_map *map);

/* caller_ids_know() - whether both ids are mapped for a thread that waits. */
bool caller_ids_know(pid_t thread, uid_t uid, gid_t gid);

#endif
