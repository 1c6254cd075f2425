/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_tag.h - a block device by what stands on it: UUID=, LABEL=, PARTUUID=, PARTLABEL=.
 *
 * All block devices are read, not udev's links: tags are data on the disks, and a link hides a second device with the
 * same tag.
 */
#ifndef FLEXGRAFT_BLOCK_DEVICE_TAG_H
#define FLEXGRAFT_BLOCK_DEVICE_TAG_H

#include <stdbool.h>

#include "base/error.h"

/* device_tag_split() - whether a source is a tag; ret_value: what follows the "=", which may be nothing. */
bool device_tag_split(const char *source, const char **ret_tag, const char **ret_value);

/*
 * device_tag_find() - the device with a tag. A btrfs of several devices has the same UUID on all of them: any of them
 * will do. Devices that do not answer for two seconds are passed over; and so are those that a container or a pod may
 * write to, where the node has another one: they can be given the tag of any.
 *
 * Gives:  ret_path, PATH_MAX bytes.
 * Errors: ENOENT there is none; ENOTUNIQ there are several.
 */
int device_tag_find(const char *tag, const char *value, char *ret_path, struct error *error);

/*
 * ---- the block devices of the node, by what sysfs says, which asks none of them.
 *
 * Left out are those without a size, lvm's private ones, and guards (block/loop_guard.h), which show what another device
 * has.
 */

/* name: in /sys/class/block; path: "/dev/...", where the device is. Others than 0 end the walk, and are its result. */
typedef int device_each_function(const char *name, const char *path, void *argument, struct error *error);
int device_each(device_each_function *function, void *argument, struct error *error);

/* device_each_is_divided() - whether it is a disk with partitions, by its name: what stands at its beginning is of no use. */
bool device_each_is_divided(const char *name);

#endif
