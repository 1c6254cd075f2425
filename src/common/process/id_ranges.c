/* SPDX-License-Identifier: Apache-2.0 */
#include "process/id_ranges.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

int id_ranges_parse(char *text, struct id_range *ret_ranges)
{
        char *line = text;
        int count = 0;

        while (*line != '\0' && count < ID_RANGES_MAX) {
                struct id_range *range = &ret_ranges[count];

                range->inside = (uint32_t)strtoul(line, &line, 10);
                range->outside = (uint32_t)strtoul(line, &line, 10);
                range->count = (uint32_t)strtoul(line, &line, 10);
                count += range->count > 0;
                line += strcspn(line, "\n");
                line += *line == '\n';
        }
        return count;
}

int id_ranges_read(int proc_fd, const char *map, struct id_range *ret_ranges)
{
        static char text[ID_RANGES_TEXT_SIZE];
        ssize_t n = file_read(proc_fd, map, text, sizeof text);

        if (n < 0)
                return n == -ENOENT ? -ESRCH : (int)n;
        return id_ranges_parse(text, ret_ranges);
}

int id_ranges_read_maps(int proc_fd, struct id_maps *ret_maps)
{
        ret_maps->users.count = id_ranges_read(proc_fd, "uid_map", ret_maps->users.ranges);
        if (ret_maps->users.count < 0)
                return ret_maps->users.count;
        ret_maps->groups.count = id_ranges_read(proc_fd, "gid_map", ret_maps->groups.ranges);
        return ret_maps->groups.count < 0 ? ret_maps->groups.count : 0;
}

bool id_ranges_map(const struct id_range *ranges, int count, bool inside, uint32_t *id)
{
        for (int i = 0; i < count; i++) {
                uint32_t first = inside ? ranges[i].inside : ranges[i].outside;

                if (*id < first || *id - first >= ranges[i].count)
                        continue;
                *id = (inside ? ranges[i].outside : ranges[i].inside) + (*id - first);
                return true;
        }
        return false;
}

bool id_map_has(const struct id_map *map, uint32_t inside)
{
        return id_ranges_map(map->ranges, map->count, /* inside= */ true, &inside);
}

int id_ranges_join(const struct id_range *one, int one_count, const struct id_range *other, int other_count,
                   struct id_range *ret_ranges)
{
        int count = 0;

        for (int i = 0; i < one_count; i++)
                for (int j = 0; j < other_count; j++) {
                        uint64_t one_end = (uint64_t)one[i].inside + one[i].count;
                        uint64_t other_end = (uint64_t)other[j].inside + other[j].count;
                        uint32_t first = one[i].inside > other[j].inside ? one[i].inside : other[j].inside;
                        uint64_t end = one_end < other_end ? one_end : other_end;

                        if (end <= first)
                                continue;
                        if (count == ID_RANGES_MAX)
                                return -E2BIG;
                        ret_ranges[count] = (struct id_range){
                                .inside = one[i].outside + (first - one[i].inside),
                                .outside = other[j].outside + (first - other[j].inside),
                                .count = (uint32_t)(end - first),
                        };
                        count++;
                }
        return count;
}
