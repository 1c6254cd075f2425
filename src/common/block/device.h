/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device.h - a device path or a filesystem's tag -> what it is, through libblkid.
 */
#ifndef FLEXGRAFT_BLOCK_DEVICE_H
#define FLEXGRAFT_BLOCK_DEVICE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct block_device {
        char path[PATH_MAX]; /* the device node, symbolic links resolved */
        uint64_t number;     /* makedev() */
        bool read_only;      /* the device itself */
};

/*
 * block_device_find() - source is a path, or UUID=, LABEL=, PARTUUID=, PARTLABEL= as in fstab(5).
 *
 * Errors:  ENOENT no such device or tag; ENOTUNIQ several devices carry the tag; ENOTBLK not a block device (nothing
 *          is opened to find out); ENXIO a device node without a device.
 */
int block_device_find(const char *source, struct block_device *ret_device, struct error *error);

/* block_device_size() - in bytes. */
int block_device_size(const struct block_device *device, uint64_t *ret_bytes, struct error *error);

/* block_device_attribute() - a line of sysfs's about it, without its end: "dm/name". Returns 0 or negative errno. */
int block_device_attribute(uint64_t number, const char *name, char *ret_text, size_t size);

/* block_device_is_dax() - whether what is on it can be mapped without a copy in memory; false where it cannot be told.
 */
bool block_device_is_dax(const struct block_device *device);

/* block_device_sequence() - a number that no other disk has had since the machine was started. Errors: ENOTTY
 * before 5.15. */
int block_device_sequence(const struct block_device *device, uint64_t *ret_sequence, struct error *error);

/*
 * block_device_fs_type() - the type of the filesystem on it, for fsopen. ret_fs_type holds 64 bytes.
 *
 * Errors:  ENODATA nothing is on it, or something that is no filesystem (named); ENOTUNIQ signatures of several.
 */
int block_device_fs_type(const struct block_device *device, char *ret_fs_type, struct error *error);

/*
 * block_device_is_unfinished() - whether it holds an xfs that mkfs has not finished: 1 or 0. mkfs.xfs writes its
 * superblock first, marked (sb_inprogress); mke2fs and mkfs.btrfs write theirs last, so one that is there is whole.
 */
int block_device_is_unfinished(const struct block_device *device, struct error *error);

/*
 * block_device_is_blank() - whether there is nothing at all on it: no signature of a filesystem, a RAID, a volume group
 * or a partition table, and nothing but zeroes where those and most data begin (the first MiB).
 *
 * Returns: 1 blank; 0 not, and ret_what (64 bytes) says what is there, "" for data that nobody recognises; negative
 * errno.
 */
int block_device_is_blank(const struct block_device *device, char *ret_what, struct error *error);

/* block_device_wipe() - make it blank, as far as block_device_is_blank() looks. Needs: that it is ours to destroy. */
int block_device_wipe(const struct block_device *device, struct error *error);

/*
 * block_device_erase() - write zeroes to all of it, so that the next user of the space reads nothing of it; the disk does
 * this by itself where it can. Errors: EBUSY it is in use; ESTALE its path leads to another device by now.
 */
int block_device_erase(const struct block_device *device, struct error *error);

/* block_device_is_zeroed() - whether all of it is zeroes: 1 or 0. Errors: ESTALE, likewise. */
int block_device_is_zeroed(const struct block_device *device, struct error *error);

/*
 * block_device_check_place() - that its node is one of the machine's own, in /dev: elsewhere a container that may make
 * device nodes could have made one of any device. Errors: EACCES.
 */
int block_device_check_place(const struct block_device *device, struct error *error);

/*
 * block_device_check_unused() - that nobody on the node has it: mounted, in a volume group or a RAID, opened
 * exclusively. Errors: EBUSY.
 */
int block_device_check_unused(const struct block_device *device, struct error *error);

#endif
