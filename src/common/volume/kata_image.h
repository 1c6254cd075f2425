/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kata_image.h - an image file that a virtual machine maps as persistent memory, with a filesystem in it.
 *
 *      0       partition table, of one partition; the guest does not see it
 *      4 KiB   struct nd_pfn_sb (drivers/nvdimm/pfn.h): the guest's kernel takes it for memory in mode fsdax
 *      2 MiB   the partition, with the filesystem; the guest's disk begins here, and is all of it
 *
 * Kata Containers finds the file as the backing file of the mounted loop device, recognizes it by what is at 4 KiB,
 * gives it to the virtual machine as an NVDIMM, and mounts the whole of that there.
 *
 * Earlier images have a second table at 2 MiB, for the guest, and the partition at 4 MiB.
 */
#ifndef FLEXGRAFT_VOLUME_KATA_IMAGE_H
#define FLEXGRAFT_VOLUME_KATA_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define KATA_IMAGE_NAME "kata.img"

/* kata_image_is_below() - whether a directory is one where the filesystem of a volume with an image is mounted. */
bool kata_image_is_below(const char *state_dir, const char *dir);

/* kata_image_record() - the name of the record of the image's loop device, which is below dir; KATA_IMAGE_RECORD_SIZE bytes. */
void kata_image_record(const char *dir, char *ret_name);

#define KATA_IMAGE_RECORD_SIZE 80

/* kata_image_exists() - whether a directory has one. */
bool kata_image_exists(const char *dir);

/*
 * kata_image_make() - ensure that a directory has one, as large as its filesystem has room for; all of it is
 * allocated, so that no write of the guest fails later. It gets its name last: one that is there is complete.
 *
 * Errors: ENOSPC there is no room for one.
 */
int kata_image_make(const char *dir, struct error *error);

/*
 * kata_image_find_offset() - where the filesystem begins, by the partition table: in the old layout elsewhere.
 *
 * The machine may write to all of the file. So only the two places of the two layouts are believed: whichever it is, the
 * content is the machine's.
 *
 * Takes:   image_fd, borrowed; its offset is not moved.
 * Errors:  EBADMSG it has another partition table, or none.
 */
int kata_image_find_offset(int image_fd, uint64_t *ret_offset_bytes, struct error *error);

/* kata_image_refuse() - fails with EOPNOTSUPP, for what can be done to no volume whose content is in an image. */
int kata_image_refuse(const char *operation, const char *volume_name, struct error *error);

#endif
