/* SPDX-License-Identifier: Apache-2.0 */
/* loop_guard_numbers.c - which loop devices are guards, by number. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/text.h"
#include "block/loop_guard.h"

#define TIDY_MAX 20 /* removing one waits for the kernel's other processors */

bool loop_guard_reserves(unsigned index)
{
        return index >= LOOP_GUARD_FIRST;
}

bool loop_guard_is_part(const char *path)
{
        return text_starts(path, "/dev/loop") && path[9] >= '0' && path[9] <= '9' &&
               loop_guard_reserves((unsigned)strtoul(path + 9, NULL, 10));
}

bool loop_guard_is_bound(unsigned index)
{
        char path[64];
        struct stat st;

        (void)snprintf(path, sizeof path, "/sys/block/loop%u/loop", index);
        return stat(path, &st) == 0;
}

int loop_guard_tidy(struct error *error)
{
        cleanup_close int control_fd = -EBADF;
        const struct dirent *entry;
        int count = 0;
        DIR *list = opendir("/sys/block");

        if (list == NULL)
                return fail(error, errno, "open", "/sys/block");
        while (count < TIDY_MAX && (entry = readdir(list)) != NULL) {
                uint64_t index;

                if (!text_starts(entry->d_name, "loop") || !text_number(entry->d_name + 4, LOOP_GUARD_END, &index) ||
                    !loop_guard_reserves((unsigned)index))
                        continue;
                /* the keeper of a guard that a call is just releasing is unbound, and will be bound again */
                if (loop_guard_is_bound((unsigned)index) || loop_guard_is_bound((unsigned)index ^ 1U))
                        continue;
                if (control_fd < 0 && (control_fd = open(LOOP_CONTROL, O_RDWR | O_CLOEXEC)) < 0)
                        break;
                /* EBUSY: a process has it open. One that has just been added to become a guard's is made anew. */
                count += ioctl(control_fd, LOOP_CTL_REMOVE, (unsigned long)index) >= 0;
        }
        (void)closedir(list); /* only read from */
        return count;
}
