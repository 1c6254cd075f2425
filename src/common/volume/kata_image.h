/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kata_image.h - an image file that a virtual machine maps as persistent memory, with a filesystem in it.
 *
 *      0       partition table for the node
 *      4 KiB   struct nd_pfn_sb (drivers/nvdimm/pfn.h): the guest's kernel takes it for memory in mode fsdax
 *      2 MiB   partition table for the guest, whose disk begins here
 *      4 MiB   the only partition
 *
 * Kata Containers finds the file as the backing file of the mounted loop device, recognizes it by what is at 4 KiB, and
 * gives it to the virtual machine as an NVDIMM.
 */
#ifndef FLEXGRAFT_VOLUME_KATA_IMAGE_H
#define FLEXGRAFT_VOLUME_KATA_IMAGE_H

#include <stdint.h>

#include "base/error.h"

#define KATA_IMAGE_NAME "kata.img"
#define KATA_IMAGE_OFFSET_BYTES ((uint64_t)4 << 20) /* of the partition, on the node */

/*
 * kata_image_make() - ensure that a directory has one, as large as its filesystem has room for; all of it is
 * allocated, so that no write of the guest fails later. It gets its name last: one that is there is complete.
 *
 * Errors: ENOSPC there is no room for one.
 */
int kata_image_make(const char *dir, struct error *error);

#endif
