/* SPDX-License-Identifier: Apache-2.0 */
#include "process/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

int proc_start_time(int proc_fd, uint64_t *ret_start_time, pid_t *ret_pid)
{
        char stat[1024];
        char *field;
        ssize_t n = file_read(proc_fd, "stat", stat, sizeof stat);

        if (n < 0)
                return n == -ENOENT ? -ESRCH : (int)n;
        *ret_pid = (pid_t)strtol(stat, NULL, 10);
        /* the second field, the program's name, may contain parentheses and spaces */
        field = strrchr(stat, ')');
        for (int i = 0; field != NULL && i < 20; i++)
                field = strchr(field + 1, ' ');
        if (field == NULL)
                return -EIO;
        *ret_start_time = strtoull(field + 1, NULL, 10);
        return 0;
}

int proc_boot_id(char *ret_boot_id)
{
        char text[64];
        ssize_t n = file_read(AT_FDCWD, "/proc/sys/kernel/random/boot_id", text, sizeof text);

        if (n < PROC_BOOT_ID_SIZE - 1)
                return n < 0 ? (int)n : -EIO;
        memcpy(ret_boot_id, text, PROC_BOOT_ID_SIZE - 1);
        ret_boot_id[PROC_BOOT_ID_SIZE - 1] = '\0';
        return 0;
}
