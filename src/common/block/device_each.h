/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_each.h - the block devices of the node, by what sysfs says, which asks none of them.
 *
 * Left out are those without a size, lvm's private ones, and guards (block/loop_guard.h), which show what another device
 * has.
 */
#ifndef FLEXGRAFT_BLOCK_DEVICE_EACH_H
#define FLEXGRAFT_BLOCK_DEVICE_EACH_H

#include <stdbool.h>

#include "base/error.h"

/* name: in /sys/class/block; path: "/dev/...", where the device is. Others than 0 end the walk, and are its result. */
typedef int device_each_function(const char *name, const char *path, void *argument, struct error *error);
int device_each(device_each_function *function, void *argument, struct error *error);

/* device_each_is_divided() - whether it is a disk with partitions, by its name: what stands at its beginning is of no use. */
bool device_each_is_divided(const char *name);

#endif
