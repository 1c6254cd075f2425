/* SPDX-License-Identifier: Apache-2.0 */
/* A container's mountinfo: what it mounts where is its own choice. */
#include "fuzz.h"

#include "mount/mountinfo.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static int dir_fd = -1;
        struct mountinfo table;

        if (dir_fd < 0)
                dir_fd = open(fuzz_directory(), O_PATH | O_DIRECTORY | O_CLOEXEC);
        (void)fuzz_file("mountinfo", data, size);
        fuzz_check(mountinfo_open(&table, dir_fd) == 0);
        while (mountinfo_next(&table))
                fuzz_check(strlen(table.mount_point) + strlen(table.source) < size);
        mountinfo_close(&table);
        return 0;
}
