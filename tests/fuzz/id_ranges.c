/* SPDX-License-Identifier: Apache-2.0 */
/* The uid_map of a container's user namespace, and its join with another. */
#include "fuzz.h"

#include "process/id_ranges.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static const struct id_range other[] = { { 0, 200000, 65536 }, { 100000, 7, 1 }, { 4294900000U, 0, 60000 } };
        static struct id_range ranges[ID_RANGES_MAX];
        static struct id_range joined[ID_RANGES_MAX];
        static int dir_fd = -1;
        int count;

        if (dir_fd < 0)
                dir_fd = open(fuzz_directory(), O_PATH | O_DIRECTORY | O_CLOEXEC);
        (void)fuzz_file("uid_map", data, size);
        count = id_ranges_read(dir_fd, "uid_map", ranges);
        fuzz_check(count <= ID_RANGES_MAX);
        if (count > 0) {
                int both = id_ranges_join(ranges, count, other, 3, joined);

                for (int i = 0; i < both; i++)
                        fuzz_check(joined[i].count > 0);
        }
        return 0;
}
