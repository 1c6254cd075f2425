/* SPDX-License-Identifier: Apache-2.0 */
#include "block/stack.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "block/loop.h"

static bool has(const struct block_stack *stack, uint64_t number)
{
        for (size_t i = 0; i < stack->count; i++)
                if (stack->numbers[i] == number)
                        return true;
        return false;
}

static int add(struct block_stack *stack, uint64_t number, struct error *error)
{
        if (has(stack, number))
                return 0;
        if (stack->count == BLOCK_STACK_MAX)
                return fail_because(error, E2BIG, "look for users", "/sys/dev/block",
                                    "more than %d devices stand on the device", BLOCK_STACK_MAX);
        stack->numbers[stack->count++] = number;
        return 0;
}

/* "MAJOR:MINOR" in a device's file "dev". A device that is gone meanwhile has none. */
static int add_named(struct block_stack *stack, int dir_fd, const char *path, struct error *error)
{
        char text[32];
        char *end;
        unsigned long device_major;

        if (file_read(dir_fd, path, text, sizeof text) <= 0)
                return 0;
        device_major = strtoul(text, &end, 10);
        return *end != ':' ? 0
                           : add(stack, makedev((unsigned)device_major, (unsigned)strtoul(end + 1, NULL, 10)), error);
}

/*
 * A partition is a directory that is called as its disk, and a number. Asking each entry is dear: a disk has about
 * thirty.
 */
static bool may_be_partition(const struct dirent *entry)
{
        return (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN) &&
               isdigit((unsigned char)entry->d_name[strlen(entry->d_name) - 1]);
}

/* What a directory of sysfs lists: its entries' devices; of_partitions: only those that are partitions. */
static int add_listed(struct block_stack *stack, int device_fd, const char *name, bool of_partitions,
                      struct error *error)
{
        DIR *list = file_list(device_fd, name);
        const struct dirent *entry;
        int dir_fd = list == NULL ? -EBADF : dirfd(list);
        int r = 0;

        if (list == NULL)
                return 0; /* the device has no such list */
        while (r == 0 && (entry = readdir(list)) != NULL) {
                char path[NAME_MAX + 16];

                (void)snprintf(path, sizeof path, "%s/partition", entry->d_name);
                if (entry->d_name[0] == '.' ||
                    (of_partitions && (!may_be_partition(entry) || faccessat(dir_fd, path, F_OK, 0) < 0)))
                        continue;
                (void)snprintf(path, sizeof path, "%s/dev", entry->d_name);
                r = add_named(stack, dir_fd, path, error);
        }
        (void)closedir(list); /* nothing was written */
        return r;
}

static int open_device(uint64_t number)
{
        char path[64];

        (void)snprintf(path, sizeof path, "/sys/dev/block/%u:%u", major(number), minor(number));
        return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Everything above those from first on. */
static int climb(struct block_stack *stack, size_t first, struct error *error)
{
        int r = 0;

        for (size_t i = first; r == 0 && i < stack->count; i++) {
                cleanup_close int fd = open_device(stack->numbers[i]);

                if (fd >= 0 && (r = add_listed(stack, fd, ".", /* of_partitions= */ true, error)) == 0)
                        r = add_listed(stack, fd, "holders", /* of_partitions= */ false, error);
        }
        return r;
}

/* The whole disk of a partition, and the devices that a logical volume or a RAID lies on. */
static int descend(struct block_stack *stack, uint64_t number, struct error *error)
{
        struct block_stack below = { .numbers = { number }, .count = 1 };
        int r = 0;

        for (size_t i = 0; r == 0 && i < below.count; i++) {
                cleanup_close int fd = open_device(below.numbers[i]);

                if (fd < 0)
                        continue;
                if (faccessat(fd, "partition", F_OK, 0) == 0)
                        r = add_named(&below, fd, "../dev", error);
                if (r == 0)
                        r = add_listed(&below, fd, "slaves", /* of_partitions= */ false, error);
        }
        for (size_t i = 0; r == 0 && i < below.count; i++)
                r = add(stack, below.numbers[i], error);
        return r;
}

struct loops {
        struct block_stack *stack;
        bool of_file;
        uint64_t device;
        uint64_t inode;
};

static int add_loop(const struct loop_device *device, void *argument, struct error *error)
{
        const struct loops *loops = argument;
        bool over = loops->of_file ? device->file_device == loops->device && device->file_inode == loops->inode
                                   : has(loops->stack, device->file_device) ||
                                             (device->file_number != 0 && has(loops->stack, device->file_number));

        return over ? add(loops->stack, device->number, error) : 0;
}

int block_stack_add_loops(int fd, const struct stat *file, struct block_stack *stack, struct error *error)
{
        struct loops loops = { .stack = stack, .of_file = true, .device = file->st_dev, .inode = file->st_ino };
        size_t first = stack->count;
        int r = loop_device_each_over(fd, add_loop, &loops, error);

        return r < 0 ? r : climb(stack, first, error);
}

int block_stack_find(uint64_t number, unsigned flags, struct block_stack *ret_stack, struct error *error)
{
        size_t first = 0;
        int r;

        *ret_stack = (struct block_stack){ .numbers = { number }, .count = 1 };
        r = climb(ret_stack, first, error);
        while (r == 0 && (flags & BLOCK_STACK_LOOPS) != 0 && first < ret_stack->count) {
                struct loops loops = { .stack = ret_stack };

                first = ret_stack->count;
                if ((r = loop_device_each(add_loop, &loops, error)) == 0)
                        r = climb(ret_stack, first, error);
        }
        return r == 0 && (flags & BLOCK_STACK_BELOW) != 0 ? descend(ret_stack, number, error) : r;
}
