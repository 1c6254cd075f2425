/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device.h - block devices: found by path or filesystem tag, probed with libblkid, wiped and erased.
 */
#ifndef FLEXGRAFT_BLOCK_DEVICE_H
#define FLEXGRAFT_BLOCK_DEVICE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/failure.h"

struct block_device {
        char path[PATH_MAX]; /* the device node, symbolic links resolved, or /dev/mapper/NAME */
        bool read_only;      /* the device itself */
        uint64_t number;     /* makedev(); of no device 0, which lies beside what follows (inject/injection.h) */
};

/* fsck(8) of an xfs or a btrfs does nothing. EBADMSG is what ext4 says of a wrong checksum. */
#define HINT_DAMAGED                                                                                                   \
        "the filesystem is damaged; see dmesg, and repair it with e2fsck (ext4), xfs_repair (xfs) or btrfs check (btrfs)"

/* block_hints - for failures of this file, of mounting what is on a device, and of giving a container the device itself. */
extern const struct hint block_hints[];

/*
 * block_device_find() - source is a path, or UUID=, LABEL=, PARTUUID=, PARTLABEL= as in fstab(5).
 *
 * Errors:  ENOENT no such device or tag; ENOTUNIQ several devices carry the tag; ENOTBLK not a block device (nothing
 *          is opened to find out); ENXIO a device node without a device.
 */
int block_device_find(const char *source, struct block_device *ret_device, struct error *error);

/*
 * block_device_open() - with flags of open(). Returns: its descriptor, owned by the caller. Errors: ESTALE its path leads
 * to another device by now.
 */
int block_device_open(const struct block_device *device, int flags, struct error *error);

/* block_device_size() - in bytes. */
int block_device_size(const struct block_device *device, uint64_t *ret_bytes, struct error *error);

/* block_device_attribute() - a line from its directory in sysfs, for example "dm/name". Returns 0 or negative errno. */
int block_device_attribute(uint64_t number, const char *name, char *ret_text, size_t size);

/*
 * block_device_state() - whether a device number still is the disk that had this sequence number: without opening it.
 * sequence: of block_device_disk(), which gives 0 before Linux 5.15 (docs/KERNEL.md#block-devices); 0: any disk.
 */
enum block_device_state { BLOCK_DEVICE_PRESENT, BLOCK_DEVICE_REPLACED, BLOCK_DEVICE_GONE };
enum block_device_state block_device_state(uint64_t number, uint64_t sequence);
uint64_t block_device_disk(uint64_t number);

/* block_device_is_dax() - whether files on it can be mapped directly (DAX); false: no, or unknown. */
bool block_device_is_dax(const struct block_device *device);

/* block_device_sequence() - a number that no other disk has had since boot. Errors: ENOTTY before Linux 5.15. */
int block_device_sequence(const struct block_device *device, uint64_t *ret_sequence, struct error *error);

/*
 * block_device_fs_type() - the type of the filesystem on it, for fsopen. ret_fs_type holds 64 bytes.
 *
 * Errors:  ENODATA it is blank, or holds something else (named in the error); ENOTUNIQ it has several signatures.
 */
int block_device_fs_type(const struct block_device *device, char *ret_fs_type, struct error *error);

/* block_device_uuid() - of the filesystem on it, of CONTENT_UUID_SIZE bytes (block/content.h); "" it has none. */
int block_device_uuid(const struct block_device *device, char *ret_uuid, struct error *error);

/*
 * block_device_is_unfinished() - whether it holds an xfs that mkfs.xfs has not finished: 1 or 0. mkfs.xfs writes the
 * superblock first, with the mark sb_inprogress; mke2fs and mkfs.btrfs write it last.
 */
int block_device_is_unfinished(const struct block_device *device, struct error *error);

/*
 * block_device_is_blank() - whether it has no signature of a filesystem, a RAID, a volume group or a partition table,
 * and only zeroes in the first MiB, where most data begins.
 *
 * Returns: 1 blank; 0 not blank: ret_what (64 bytes) is the type of the content, "" for unknown data; negative errno.
 */
int block_device_is_blank(const struct block_device *device, char *ret_what, struct error *error);

/* block_device_wipe() - overwrite what block_device_is_blank() checks. The caller may destroy the content. */
int block_device_wipe(const struct block_device *device, struct error *error);

/*
 * block_device_erase() - write zeroes to all of it, so that the next user of the space reads nothing of it; the disk
 * does this by itself where it can. Errors: EBUSY it is in use; ESTALE its path leads to another device by now.
 */
int block_device_erase(const struct block_device *device, struct error *error);

/* block_device_is_zeroed() - whether all of it is zeroes: 1 or 0. Errors: ESTALE, likewise. */
int block_device_is_zeroed(const struct block_device *device, struct error *error);

/*
 * block_device_check_node() - check that its node is in /dev. Elsewhere, a container that may create device nodes
 * could have created one for any device. Errors: EACCES.
 */
int block_device_check_node(const struct block_device *device, struct error *error);

/*
 * block_device_check_unused() - check that it is not in use on the node: mounted, part of a volume group or RAID, or
 * opened exclusively. Errors: EBUSY.
 */
int block_device_check_unused(const struct block_device *device, struct error *error);

#endif
