/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_filesystem.h - the filesystem on a volume's device: made where there is none, repaired, mounted.
 */
#ifndef FLEXGRAFT_VOLUME_DEVICE_FILESYSTEM_H
#define FLEXGRAFT_VOLUME_DEVICE_FILESYSTEM_H

#include "volume/call.h"

/*
 * device_filesystem_mount() - of the record's device. Needs the helper that runs mkfs (block/fs_tools.h).
 *
 * Gives:   ret_durability, how durable the record must be before pods write to it.
 * Returns: a detached mount, owned by the caller.
 */
int device_filesystem_mount(struct volume_call *call, enum file_durability *ret_durability, struct error *error);

/*
 * device_filesystem_attach() - attach the volume, and mount the filesystem on its device, on no directory; the record is
 * written as durably as it must be. Returns a detached mount, owned by the caller.
 */
int device_filesystem_attach(struct volume_call *call, struct error *error);

/*
 * device_filesystem_unmake() - where the record says that its filesystem is unfinished, make the device blank again,
 * unless it is another device by now. The record stays as it is.
 */
int device_filesystem_unmake(const struct volume_call *call, struct error *error);

/*
 * device_filesystem_reach() - a detached mount of the filesystem as it is: nothing is checked or made. Where it is
 * mounted, wherever, it is the same filesystem. Returns: its fd, owned by the caller. Errors: EBUSY it is mounted
 * read-only.
 */
int device_filesystem_reach(const struct volume_call *call, const struct block_device *device, const char *type,
                            struct error *error);

/*
 * device_filesystem_grow_copy() - grow the filesystem that is mounted for writing at dir to the size of the volume: a copy
 * that is larger than its source begins with one of the source's size. After provisioned_hold(), where provisioned_grows().
 * Needs the helper that runs mkfs. A failure is logged.
 */
void device_filesystem_grow_copy(const struct volume_call *call, const char *dir);

/* ---- a volume's device on this node: waited for, and checked that no other volume has it */

/*
 * volume_device_wait_for() - wait for a device that appears later: a disk just attached to the machine, a link that
 * udev makes. Errors: ENOENT or ENXIO after the timeout.
 */
int volume_device_wait_for(const char *source, unsigned timeout_seconds, struct block_device *ret_device,
                           struct error *error);

/*
 * volume_device_check_others() - check that no other volume uses a device that will be written, and none that writes one
 * that will be read. volume_device_check_alone() - nor another process. volume_device_was_checked() - whether attach has
 * asked for what this call does: it asked for less where it was to read alone. Errors: EBUSY.
 */
bool volume_device_was_checked(const struct volume_call *call);
int volume_device_check_others(struct volume_call *call, const struct block_device *device, struct error *error);
int volume_device_check_alone(struct volume_call *call, const struct block_device *device, struct error *error);

#endif
