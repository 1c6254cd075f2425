/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filesystem.h - the filesystem of a volume: created on a blank device, repaired, grown while mounted; and whether it is on its device alone.
 */
#ifndef FLEXGRAFT_BLOCK_FILESYSTEM_H
#define FLEXGRAFT_BLOCK_FILESYSTEM_H

#include <stdbool.h>

#include "base/error.h"
#include "base/need.h"
#include "block/device.h"

#define FILESYSTEM_TYPE_SIZE 64

/*
 * filesystem_find() - the filesystem on a device, compared with the requested type ("": any).
 *
 * Gives:   ret_type, of FILESYSTEM_TYPE_SIZE bytes.
 * Returns: 1 it has a filesystem of that type; 0 it is blank, and ret_type is the type to create (default ext4).
 * Errors:  EINVAL it has another type, or the type cannot be created here; ENODATA it holds something else than a
 *          filesystem, or unknown data.
 */
int filesystem_find(const struct block_device *device, const char *asked, char *ret_type, struct error *error);

/*
 * filesystem_check_type() - whether such a filesystem ("" the default) can be created here. volume names what is to have it;
 * the reason begins with the words of why. Errors: EINVAL.
 */
int filesystem_check_type(const char *type, const char *volume, const char *why, struct error *error);

/* filesystem_choose() - the type to create on a device that is blank. Returns 0, or EINVAL. */
int filesystem_choose(const struct block_device *device, const char *asked, char *ret_type, struct error *error);

/* filesystem_needs() - what the node must have to make and mount one of this type ("" the default). */
need_set filesystem_needs(const char *type);

/* filesystem_minimum_bytes() - what such a filesystem needs; 0: it is not known. */
uint64_t filesystem_minimum_bytes(const char *type);

/*
 * filesystem_check_size() - whether such a filesystem ("" any) can be made in so many bytes; volume names what has them.
 * Errors: EINVAL it cannot.
 */
int filesystem_check_size(const char *type, uint64_t size_bytes, const char *volume, struct error *error);

/*
 * filesystem_make() - run mkfs on a blank device. Errors: those of fs_tool_run(); EIO mkfs failed, with its output.
 */
int filesystem_make(const struct block_device *device, const char *type, bool keep_blocks, unsigned timeout_seconds,
                    struct error *error);

/* filesystem_make_direct() - the same, with a layout that allows huge pages for direct mappings (DAX). */
int filesystem_make_direct(const struct block_device *device, const char *type, unsigned timeout_seconds,
                           struct error *error);

/*
 * filesystem_unmake() - make the device blank after mkfs was interrupted: if it holds a filesystem with a mark of that,
 * or, on the same device, unknown data. A complete filesystem is never changed.
 */
int filesystem_unmake(const struct block_device *device, bool same_device, struct error *error);

/*
 * filesystem_repair() - run e2fsck -p before a writable mount, as kubelet's mounter does. Filesystems that check
 * themselves when mounted (xfs, btrfs) are left alone, and so is ext4 if e2fsck is not installed.
 * Errors: EUCLEAN there are errors that need a decision by an administrator.
 */
int filesystem_repair(const struct block_device *device, const char *type, unsigned timeout_seconds,
                      struct error *error);

/*
 * filesystem_mend() - repair a wrong checksum of the superblock, for which the kernel refuses a mount with EBADMSG.
 * e2fsprogs writes a superblock in words of two bytes, the checksum last (lib/ext2fs/closefs.c,
 * write_primary_superblock). If it was killed in between, e2fsck -p cannot open the filesystem. debugfs writes a new
 * checksum; then e2fsck -p checks everything.
 * Errors: EBADMSG another type of filesystem; those of filesystem_repair(); ENOENT debugfs is not installed.
 */
int filesystem_mend(const struct block_device *device, const char *type, unsigned timeout_seconds, struct error *error);

/*
 * filesystem_grow_mounted() - the same, wherever it is mounted: dir_fd is of any directory of it.
 * Needs: CAP_SYS_ADMIN; CAP_SYS_RESOURCE for ext4. Errors: EOPNOTSUPP another type; those of the kernel.
 */
int filesystem_grow_mounted(const struct block_device *device, const char *type, int dir_fd, struct error *error);

/* filesystem_grow() - grow it to the size of its device, while it is mounted at dir. */
int filesystem_grow(const struct block_device *device, const char *type, const char *dir, unsigned timeout_seconds,
                    struct error *error);

/* ---- filesystems that name other devices of the node, which the kernel would open, whoever may use them */

/*
 * filesystem_check_alone() - that the filesystem on a device, which is about to be mounted, is on this device alone. What is
 * on a disk may be a container's own work.
 *
 * Source: open_fs_devices() and device_list_add() in the kernel's fs/btrfs/volumes.c, ext4_get_journal_blkdev() in
 * fs/ext4/super.c, erofs_init_device() in fs/erofs/super.c.
 *
 * Takes:  fs_type, by which it is mounted. Devices that do not answer for two seconds are passed over.
 * Errors: EOPNOTSUPP it is on several, its journal is on another, or it is the seed of others; ENOTUNIQ before Linux 6.7,
 *         another device has a part of a btrfs of the same id.
 */
int filesystem_check_alone(const char *fs_type, const char *device, struct error *error);

/*
 * filesystem_check_opened() - the same of one that the kernel has opened, before anyone sees it: a btrfs may be on more
 * devices than its superblock says.
 *
 * Source: read_one_dev() and btrfs_read_chunk_tree() in fs/btrfs/volumes.c, which warn of that (seen on 6.18).
 *
 * Takes:  number, of the device.
 * Errors: EOPNOTSUPP another device was opened, too, or sysfs does not tell; those of readlink(2).
 */
int filesystem_check_opened(const char *fs_type, uint64_t number, const char *device, struct error *error);

#endif
