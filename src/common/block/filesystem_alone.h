/* SPDX-License-Identifier: Apache-2.0 */
/* filesystem_alone.h - filesystems that name other devices of the node, which the kernel would open, whoever may use them. */
#ifndef FLEXGRAFT_BLOCK_FILESYSTEM_ALONE_H
#define FLEXGRAFT_BLOCK_FILESYSTEM_ALONE_H

#include "base/error.h"

/*
 * filesystem_check_alone() - that the filesystem on a device, which is about to be mounted, is on this device alone. What is
 * on a disk may be a container's own work.
 *
 * Source: open_fs_devices() and device_list_add() in the kernel's fs/btrfs/volumes.c, ext4_get_journal_blkdev() in
 * fs/ext4/super.c.
 *
 * Takes:  fs_type, by which it is mounted. Devices that do not answer for two seconds are passed over.
 * Errors: EOPNOTSUPP it is on several, its journal is on another, or it is the seed of others; ENOTUNIQ before Linux 6.7,
 *         another device has a part of a btrfs of the same id.
 */
int filesystem_check_alone(const char *fs_type, const char *device, struct error *error);

#endif
