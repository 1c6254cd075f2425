/* SPDX-License-Identifier: Apache-2.0 */
/* content.h - what a device or a file holds, or a part of it, as libblkid sees it: a filesystem, a partition table. */
#ifndef FLEXGRAFT_BLOCK_CONTENT_H
#define FLEXGRAFT_BLOCK_CONTENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define CONTENT_TYPE_SIZE 64
#define CONTENT_NAME_SIZE 128  /* of a partition, terminated: GPT has 36 characters */
#define CONTENT_LABEL_SIZE 257 /* of a filesystem: btrfs has 256 bytes */
#define CONTENT_UUID_SIZE 40   /* also of a partition */
#define CONTENT_PARTITIONS_MAX 256

/*
 * content_fs_type() - the type of the filesystem in a part of a device or file (0, 0: all of it), for fsopen.
 *
 * Gives:  ret_type, of CONTENT_TYPE_SIZE bytes.
 * Errors: ENODATA it is blank, or holds something else (named in the error); ENOTUNIQ it has several signatures.
 */
int content_fs_type(int fd, uint64_t offset_bytes, uint64_t size_bytes, const char *subject, char *ret_type,
                    struct error *error);

/* content_tags() - the label and the UUID of such a filesystem; "" where it has none. Returns 0 or negative errno. */
int content_tags(int fd, uint64_t offset_bytes, uint64_t size_bytes, char ret_label[CONTENT_LABEL_SIZE],
                 char ret_uuid[CONTENT_UUID_SIZE]);

/*
 * content_block_bytes() - the size of the sectors of the filesystem in a file, from there on; of ext2 to ext4, of its
 * blocks: on a device with larger ones it cannot be mounted. 0: it holds none that is known.
 */
unsigned content_block_bytes(int fd, uint64_t offset_bytes);

struct content_partition {
        unsigned number; /* from 1 */
        uint64_t offset_bytes;
        uint64_t size_bytes;
        char name[CONTENT_NAME_SIZE]; /* of GPT; "" none */
        char uuid[CONTENT_UUID_SIZE];
};

struct content_table {
        unsigned sector_bytes; /* that its numbers count */
        size_t count;
        struct content_partition partitions[CONTENT_PARTITIONS_MAX];
};

/*
 * content_partitions() - the partition table of a device or file, without the extended partitions that hold others. What
 * it says of a partition may be nonsense: offset and size are as they stand there.
 *
 * Returns: 1; or 0: there is no table. Errors: E2BIG there are more than CONTENT_PARTITIONS_MAX partitions.
 */
int content_partitions(int fd, const char *subject, struct content_table *ret_table, struct error *error);

#endif
