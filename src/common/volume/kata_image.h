/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kata_image.h - an image file that a virtual machine maps as persistent memory, and finds a filesystem in.
 *
 *      0       a partition table, as the node sees it
 *      4 KiB   what makes the machine's kernel take it for memory in mode fsdax (drivers/nvdimm/pfn.h, struct
 * nd_pfn_sb) 2 MiB   a partition table, as the machine sees it: its disk begins here 4 MiB   the only partition
 *
 * Kata Containers knows such a file by what is at 4 KiB, finds it as the backing file of the loop device that is
 * mounted, and gives it to the machine as an NVDIMM.
 */
#ifndef FLEXGRAFT_VOLUME_KATA_IMAGE_H
#define FLEXGRAFT_VOLUME_KATA_IMAGE_H

#include <stdint.h>

#include "base/error.h"

#define KATA_IMAGE_NAME "kata.img"
#define KATA_IMAGE_OFFSET_BYTES ((uint64_t)4 << 20) /* of the partition, on the node */

/*
 * kata_image_make() - ensure that one is in a directory, as large as its filesystem has room for; all of it is
 * allocated, so that no machine's write fails later. One that is there is whole: it gets its name last.
 *
 * Errors: ENOSPC there is no room for one.
 */
int kata_image_make(const char *dir, struct error *error);

#endif
