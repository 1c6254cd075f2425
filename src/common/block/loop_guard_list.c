/* SPDX-License-Identifier: Apache-2.0 */
/* loop_guard_list.c - all guards of the node, as sysfs has them, which asks no device. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/loop.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/text.h"
#include "block/loop_guard.h"

static bool read_attribute(unsigned index, const char *name, char *ret_text, size_t size)
{
        char path[64];

        (void)snprintf(path, sizeof path, "/sys/block/loop%u/%s", index, name);
        return file_read(AT_FDCWD, path, ret_text, size) > 0;
}

/* Whether a name in /sys/block is that of an outer loop device. */
static bool look_at(const char *name, struct loop_guard *ret_guard)
{
        uint64_t index;
        char number[32];
        char *minor_text;
        char read_only[8];
        unsigned long major_number;

        if (!text_starts(name, "loop") || !text_number(name + strlen("loop"), LOOP_GUARD_END, &index) ||
            !loop_guard_reserves((unsigned)index) || index % 2 != 0 || !loop_backing_path(name, ret_guard->device) ||
            !read_attribute((unsigned)index, "dev", number, sizeof number) ||
            !read_attribute((unsigned)index, "ro", read_only, sizeof read_only))
                return false;
        major_number = strtoul(number, &minor_text, 10);
        if (*minor_text != ':')
                return false;
        ret_guard->number = makedev((unsigned)major_number, (unsigned)strtoul(minor_text + 1, NULL, 10));
        ret_guard->writes = read_only[0] == '0';
        return true;
}

int loop_guard_each(loop_guard_function *function, void *argument, struct error *error)
{
        struct loop_guard guard;
        const struct dirent *entry;
        DIR *list = opendir("/sys/block");
        int r = 0;

        if (list == NULL)
                return fail(error, errno, "open", "/sys/block");
        while (r == 0 && (entry = readdir(list)) != NULL)
                if (look_at(entry->d_name, &guard))
                        r = function(&guard, argument, error);
        (void)closedir(list); /* only read from */
        return r;
}

struct owned {
        const char *device;
        uint64_t key;
};

static int release_if_on(const struct loop_guard *guard, void *argument, struct error *error)
{
        const struct owned *owned = argument;

        return strcmp(guard->device, owned->device) == 0 ? loop_guard_release(guard->number, owned->key, error) : 0;
}

int loop_guard_release_on(const char *device, uint64_t key, struct error *error)
{
        struct owned owned = { .device = device, .key = key };

        return loop_guard_each(release_if_on, &owned, error);
}

static int writes_to(const struct loop_guard *guard, void *argument, struct error *error)
{
        (void)error;
        return guard->writes && strcmp(guard->device, argument) == 0;
}

int loop_guard_writes_to(const char *device, struct error *error)
{
        return loop_guard_each(writes_to, (void *)device, error);
}

/* ---- which loop devices are guards, by number */

#define TIDY_MAX 20 /* removing one waits for the kernel's other processors */

bool loop_guard_reserves(unsigned index)
{
        return index >= LOOP_GUARD_FIRST;
}

bool loop_guard_has_name(const char *name)
{
        return text_starts(name, "loop") && name[4] >= '0' && name[4] <= '9' &&
               loop_guard_reserves((unsigned)strtoul(name + 4, NULL, 10));
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
