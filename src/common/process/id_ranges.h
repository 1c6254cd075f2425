/* SPDX-License-Identifier: Apache-2.0 */
/*
 * id_ranges.h - what a user namespace maps: the lines of /proc/PID/uid_map and gid_map.
 */
#ifndef FLEXGRAFT_PROCESS_ID_RANGES_H
#define FLEXGRAFT_PROCESS_ID_RANGES_H

#include <stdint.h>

#define ID_RANGES_MAX 340 /* user_namespaces(7) */

struct id_range {
        uint32_t inside;
        uint32_t outside; /* as the reader's user namespace counts: ours is the node's */
        uint32_t count;
};

/*
 * id_ranges_read() - the ranges of a process. Takes its directory in procfs, and "uid_map" or "gid_map".
 * Returns: how many they are, or negative errno; ESRCH once it is gone.
 */
int id_ranges_read(int proc_fd, const char *map, struct id_range *ret_ranges);

/*
 * id_ranges_join() - from the ids on the outside of one to the ids on the outside of the other, by way of what both
 * call the same inside: ret_ranges[].inside is the one's outside. At most ID_RANGES_MAX of them.
 * Returns: how many they are; E2BIG more than the kernel takes.
 */
int id_ranges_join(const struct id_range *one, int one_count, const struct id_range *other, int other_count,
                   struct id_range *ret_ranges);

#endif
