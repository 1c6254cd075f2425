/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filesystem.h - a volume's filesystem: made where there is nothing, repaired where it can be, grown while it is in
 * use.
 */
#ifndef FLEXGRAFT_BLOCK_FILESYSTEM_H
#define FLEXGRAFT_BLOCK_FILESYSTEM_H

#include <stdbool.h>

#include "base/error.h"
#include "block/device.h"

#define FILESYSTEM_TYPE_SIZE 64

/*
 * filesystem_find() - what is on a device, held against what was asked for ("" for anything).
 *
 * Gives:   ret_type, of FILESYSTEM_TYPE_SIZE bytes.
 * Returns: 1 a filesystem of that type; 0 the device is blank, and ret_type is what to make: ext4 unless asked.
 * Errors:  EINVAL another filesystem than was asked for, or one that mkfs is not known for; ENODATA something that is
 * no filesystem, or data that nobody recognises.
 */
int filesystem_find(const struct block_device *device, const char *asked, char *ret_type, struct error *error);

/* filesystem_choose() - the same of a device that is known to be blank: what to make on it. Returns 0, or EINVAL. */
int filesystem_choose(const struct block_device *device, const char *asked, char *ret_type, struct error *error);

/*
 * filesystem_make() - mkfs, on a blank device. Errors: those of fs_tool_run(); EIO mkfs failed, with what
 * it said.
 */
int filesystem_make(const struct block_device *device, const char *type, bool keep_blocks, unsigned timeout_seconds,
                    struct error *error);

/* filesystem_make_direct() - the same, laid out so that what is mapped (DAX) gets huge pages. */
int filesystem_make_direct(const struct block_device *device, const char *type, unsigned timeout_seconds,
                           struct error *error);

/*
 * filesystem_unmake() - make the device blank where a mkfs was cut short: where it holds a filesystem that says so
 * itself, or on the same device something that nobody recognises. A filesystem that is whole is never touched, whoever
 * made it.
 */
int filesystem_unmake(const struct block_device *device, bool same_device, struct error *error);

/*
 * filesystem_repair() - before it is mounted for writing: e2fsck -p, as kubelet's own mounter has it. A filesystem that
 * checks itself when it is mounted (xfs, btrfs) is left alone, and so is one whose fsck is not installed.
 * Errors: EUCLEAN there are errors that only a human may decide about.
 */
int filesystem_repair(const struct block_device *device, const char *type, unsigned timeout_seconds,
                      struct error *error);

/*
 * filesystem_mend() - after the kernel refused to mount it with EBADMSG: the superblock's checksum is wrong. e2fsprogs
 * writes a superblock in words of two bytes, the checksum as the last (lib/ext2fs/closefs.c, write_primary_superblock),
 * and where it was killed between two of them, e2fsck -p cannot open what is there. It gets a checksum by debugfs, and
 * e2fsck -p checks all of it.
 * Errors: EBADMSG it is no filesystem of that sort; what filesystem_repair() has; ENOENT debugfs is not installed.
 */
int filesystem_mend(const struct block_device *device, const char *type, unsigned timeout_seconds, struct error *error);

/* filesystem_grow() - to all of its device, while it is mounted at dir. */
int filesystem_grow(const struct block_device *device, const char *type, const char *dir, unsigned timeout_seconds,
                    struct error *error);

#endif
