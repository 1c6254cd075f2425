/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image.h - a file of the node that holds a filesystem, or a partition table: what of it is meant, and a loop device that
 * shows that.
 *
 * What is in the file may be a container's own work. It is read in a process of its own, which has nothing but the file.
 */
#ifndef FLEXGRAFT_BLOCK_IMAGE_H
#define FLEXGRAFT_BLOCK_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "block/content.h"
#include "block/device.h"

#define IMAGE_PARTITION_MAX 65535 /* a number in a request */

/* Which part of an image. */
struct image_choice {
        bool by_number;
        unsigned number;  /* of a partition; 0: the whole image */
        const char *name; /* of a partition, or PARTLABEL=, PARTUUID=, LABEL= or UUID= and its value; NULL: none */
};

struct image_part {
        uint64_t offset_bytes;
        uint64_t size_bytes;
        unsigned number;              /* of the partition; 0: the whole image */
        unsigned sector_bytes;        /* of the disk that it is an image of */
        char type[CONTENT_TYPE_SIZE]; /* of the filesystem; "" not asked for */
};

/*
 * image_find() - the part of an image of so many bytes that is chosen, and the type of the filesystem in it, if probe is
 * set. Without a choice it is the whole image, or its only partition.
 *
 * Errors: EINVAL it has several partitions, which the error lists; ENOENT it has none of this number or name; ENOTUNIQ
 *         several have this name; EBADMSG the table contradicts itself, or the size; those of content_fs_type().
 */
int image_find(int fd, const char *image, uint64_t image_bytes, const struct image_choice *choice, bool probe,
               struct image_part *ret_part, struct error *error);

/*
 * image_attach() - a loop device that shows a part of an image, and ends after its last use: the one that does already,
 * so that all mounts share a superblock, or a new one. Only one process at a time may call it for an image.
 *
 * Takes:   fd, open for writing unless read_only; borrowed. known: makedev() of a loop device that may show it, or 0.
 *          Only if it does not, and somebody else has the file open, all loop devices are looked at.
 * Gives:   ret_device.
 * Returns: a descriptor of the device, which holds it; owned by the caller.
 * Errors:  EBUSY the image is a volume's, or another loop device shows some of the same bytes, and one of both writes.
 */
int image_attach(int fd, const char *image, const struct image_part *part, bool read_only, uint64_t known,
                 struct block_device *ret_device, struct error *error);

#endif
