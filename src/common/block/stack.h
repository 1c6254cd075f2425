/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stack.h - the block devices that have the content of another: its partitions, the logical volumes and RAIDs on it,
 * loop devices over it.
 */
#ifndef FLEXGRAFT_BLOCK_STACK_H
#define FLEXGRAFT_BLOCK_STACK_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/error.h"

#define BLOCK_STACK_MAX 200

struct block_stack {
        uint64_t numbers[BLOCK_STACK_MAX]; /* makedev(); the device that was asked for is the first */
        size_t count;
};

/*
 * block_stack_find() - a device and all that stands on it.
 *
 * Takes:  flags: BLOCK_STACK_LOOPS, loop devices over any of these, and over files of their filesystems, too: that looks
 *         at every loop device of the node. BLOCK_STACK_BELOW, the disk that it is a partition of, and what it consists
 *         of, too.
 * Errors: E2BIG there are more than BLOCK_STACK_MAX.
 */
enum {
        BLOCK_STACK_LOOPS = 1 << 0,
        BLOCK_STACK_BELOW = 1 << 1,
};
int block_stack_find(uint64_t number, unsigned flags, struct block_stack *ret_stack, struct error *error);

/* block_stack_add_loops() - loop devices over a file, and what stands on them. fd: as loop_device_each_over() takes. */
int block_stack_add_loops(int fd, const struct stat *file, struct block_stack *stack, struct error *error);

#endif
