/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop_backing.h - what is behind a loop device, as sysfs has it, which asks nobody: the device itself asks the
 * filesystem of its file, which may hang.
 */
#ifndef FLEXGRAFT_BLOCK_LOOP_BACKING_H
#define FLEXGRAFT_BLOCK_LOOP_BACKING_H

#include <stdbool.h>

/*
 * loop_backing_path() - the path of what is behind a loop device ("loop3"), PATH_MAX bytes; false: there is nothing. The
 * kernel cuts a long one, and says "(deleted)".
 */
bool loop_backing_path(const char *name, char *ret_path);

#endif
