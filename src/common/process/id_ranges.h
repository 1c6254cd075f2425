/* SPDX-License-Identifier: Apache-2.0 */
/*
 * id_ranges.h - the id mapping of a user namespace: the lines of /proc/PID/uid_map and gid_map.
 */
#ifndef FLEXGRAFT_PROCESS_ID_RANGES_H
#define FLEXGRAFT_PROCESS_ID_RANGES_H

#include <stdbool.h>
#include <stdint.h>

#define ID_RANGES_MAX 340         /* user_namespaces(7) */
#define ID_RANGES_TEXT_SIZE 16384 /* of all lines: one has at most 33 characters */

struct id_range {
        uint32_t inside;
        uint32_t outside; /* in the user namespace of the reader: the node's */
        uint32_t count;
};

/* Both maps of a user namespace. */
struct id_maps {
        struct id_map {
                int count;
                struct id_range ranges[ID_RANGES_MAX];
        } users, groups;
};

/* id_ranges_parse() - the ranges in the text of a map. Returns: their number. */
int id_ranges_parse(char *text, struct id_range *ret_ranges);

/*
 * id_ranges_read() - the ranges of a process. Takes its directory in procfs, and "uid_map" or "gid_map".
 * Returns: their number, or negative errno; ESRCH when the process has ended.
 */
int id_ranges_read(int proc_fd, const char *map, struct id_range *ret_ranges);

/* id_ranges_read_maps() - both maps of a process. Returns 0 or negative errno. */
int id_ranges_read_maps(int proc_fd, struct id_maps *ret_maps);

/* id_ranges_map() - inside to outside, in place; with inside false the inverse. Returns whether the id is mapped. */
bool id_ranges_map(const struct id_range *ranges, int count, bool inside, uint32_t *id);

/* id_map_has() - whether the user namespace has an id, as it counts. */
bool id_map_has(const struct id_map *map, uint32_t inside);

/*
 * id_ranges_join() - map the outside ids of one mapping to the outside ids of the other, where the inside ids are
 * equal. ret_ranges[].inside is the outside of the first. At most ID_RANGES_MAX ranges.
 * Returns: their number; E2BIG: more than the kernel accepts.
 */
int id_ranges_join(const struct id_range *one, int one_count, const struct id_range *other, int other_count,
                   struct id_range *ret_ranges);

#endif
