/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop_guard.h - a block device that a container may open: behind a loop device of its own, so that no ioctl reaches
 * the device itself (docs/KERNEL.md#raw-devices).
 *
 * A guard is two loop devices of neighbouring numbers: the outer one, on the device, is the container's; the keeper, on
 * the outer one, holds it open, so that the container cannot detach it. Both have high random numbers, which no later
 * guard is likely to have again, and which are taken away with it: LOOP_CTL_GET_FREE gives any that is unused to others.
 */
#ifndef FLEXGRAFT_BLOCK_LOOP_GUARD_H
#define FLEXGRAFT_BLOCK_LOOP_GUARD_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define LOOP_CONTROL "/dev/loop-control"
#define LOOP_GUARD_FIRST 4096     /* the lowest number of a guard */
#define LOOP_GUARD_END (1U << 20) /* of minor numbers; there are fewer where each has some for its partitions */

/*
 * loop_guard_make() - a guard of a device. It ends with the returned descriptor, unless loop_guard_keep() was called.
 *
 * Needs:   CAP_SYS_ADMIN.
 * Takes:   device, makedev() of the node at path; key, which the keeper's name holds: the guard's owner.
 * Gives:   ret_number, makedev() of the outer loop device.
 * Returns: a descriptor of the keeper, owned by the caller.
 * Errors:  EOPNOTSUPP there are no loop devices; ESTALE the device's path leads to another device by now.
 */
int loop_guard_make(const char *path, uint64_t device, uint64_t key, bool writes, uint64_t *ret_number,
                    struct error *error);

/* loop_guard_keep() - let a guard outlive this process. Takes: the descriptor of loop_guard_make(). */
int loop_guard_keep(int keeper_fd, struct error *error);

/*
 * loop_guard_hold() - hold the guard that an earlier call made and kept, so that no other call releases it meanwhile.
 * Returns: a descriptor, owned by the caller; or -ENXIO, without a message: there is none with this number and key.
 */
int loop_guard_hold(uint64_t number, uint64_t key);

/* loop_guard_flush() - write out what the outer loop device has; nothing where there is no guard with this number and key. */
int loop_guard_flush(uint64_t number, uint64_t key, struct error *error);

/* loop_guard_grow() - adopt the new size of the device; nothing where there is no guard with this number and key. */
int loop_guard_grow(uint64_t number, uint64_t key, struct error *error);

/*
 * loop_guard_show_whole() - have the outer loop device show all of its device again: a process that may write to it can
 * change where it begins and ends, and others find it so.
 *
 * Takes:   the descriptor of loop_guard_hold(), of a guard that may be written to: of one that may not, its container
 *          can have chosen the file (LOOP_CHANGE_FD), which is asked here, and could hang.
 * Errors:  EBUSY a process writes to it all the time, or has it open exclusively.
 */
int loop_guard_show_whole(int fd, struct error *error);

/*
 * loop_guard_release() - write out what the outer loop device has, and detach both.
 * Returns: 0 they are gone; 1 a process still has the outer one open: the guard stays; or negative errno.
 */
int loop_guard_release(uint64_t number, uint64_t key, struct error *error);

/*
 * loop_guard_release_on() - the same of all guards with this key on a device ("/dev/loop3"), whose numbers nobody knows
 * any more. Looks at every loop device of the node.
 */
int loop_guard_release_on(const char *device, uint64_t key, struct error *error);

/*
 * loop_guard_tidy() - take away unused loop devices with numbers of guards, which calls that were killed have left: when
 * all others are in use, LOOP_CTL_GET_FREE gives them to others. Returns how many, 20 at most; or negative errno.
 */
int loop_guard_tidy(struct error *error);

struct loop_guard {
        uint64_t number;       /* makedev() of the outer loop device */
        bool writes;           /* a container or a pod may write by it */
        char device[PATH_MAX]; /* the path of what is behind it, "/dev/loop3" */
};

/*
 * loop_guard_each() - call function() for each guard of the node, as sysfs has it, until it returns other than 0, which
 * is the result. Looks at every block device of the node.
 */
typedef int loop_guard_function(const struct loop_guard *guard, void *argument, struct error *error);
int loop_guard_each(loop_guard_function *function, void *argument, struct error *error);

/* loop_guard_writes_to() - whether a container or a pod may write to this device ("/dev/loop3") by a guard: 1, or 0. */
int loop_guard_writes_to(const char *device, struct error *error);

/* loop_guard_path() - the path of its outer loop device; false: there is none of this number. */
#define LOOP_GUARD_PATH_SIZE 32
bool loop_guard_path(uint64_t number, char ret_path[LOOP_GUARD_PATH_SIZE]);

/*
 * loop_guard_is_shown() - whether an open loop device, borrowed, is over the outer device of a guard, as kubelet makes one to
 * hold what a pod has. Asks the file's filesystem.
 */
bool loop_guard_is_shown(int fd);

/* loop_guard_exists() - whether the keeper of a guard is attached, whatever its key. */
bool loop_guard_exists(uint64_t number);

/* loop_guard_reserves() - whether a loop device's number ("/dev/loop3": 3) is for guards only. */
bool loop_guard_reserves(unsigned index);

/* loop_guard_has_name() - whether that is a guard's loop device, or a partition of one: by the kernel's name, "loop4096p1". */
bool loop_guard_has_name(const char *name);

/*
 * loop_guard_is_bound() - whether a loop device is attached to anything, as sysfs has it: LOOP_GET_STATUS64 asks the file
 * behind it, which a container may have chosen (LOOP_CHANGE_FD): it could hang.
 */
bool loop_guard_is_bound(unsigned index);

/*
 * ---- loop_backing.c: what is behind a loop device, as sysfs has it, which asks nobody: the device itself asks the
 * filesystem of its file, which may hang.
 */

/*
 * loop_backing_path() - the path of what is behind a loop device ("loop3"), PATH_MAX bytes; false: there is nothing. The
 * kernel cuts a long one, and says "(deleted)".
 */
bool loop_backing_path(const char *name, char *ret_path);

/*
 * loop_name() - the kernel's name of a loop device or a partition of one, "loop3p1": by its number, whatever path leads to it. Minor
 * numbers can be multiples of what loop devices count by. False: it is none.
 */
#define LOOP_NAME_SIZE 32
bool loop_name(uint64_t number, char ret_name[LOOP_NAME_SIZE]);

#endif
