/* SPDX-License-Identifier: Apache-2.0 */
/*
 * newer.h - requests that libfuse 3.14 does not know (NEWER_... of request.h). Each begins as one that it knows, and is
 * given to it as that; the operation finds the request as it is by request_current(), and answers it itself. So what is
 * repeated after a crash is the request as the kernel sent it.
 */
#ifndef FLEXGRAFT_REMAP_NEWER_H
#define FLEXGRAFT_REMAP_NEWER_H

#include <linux/fuse.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The answer to NEWER_STATX: struct fuse_statx_out of Linux 6.6. */
struct newer_time {
        int64_t seconds;
        uint32_t nanoseconds;
        int32_t reserved;
};
struct newer_statx {
        uint64_t valid; /* for so many seconds, and nanoseconds */
        uint32_t valid_nanoseconds;
        uint32_t flags;
        uint64_t spare[2];
        uint32_t mask; /* from here on as struct statx, whose values the masks have */
        uint32_t block_size;
        uint64_t attributes;
        uint32_t links;
        uint32_t uid;
        uint32_t gid;
        uint16_t mode;
        uint16_t spare2;
        uint64_t inode;
        uint64_t size;
        uint64_t blocks;
        uint64_t attributes_mask;
        struct newer_time accessed;
        struct newer_time born;
        struct newer_time changed;
        struct newer_time modified;
        uint32_t special_major;
        uint32_t special_minor;
        uint32_t device_major;
        uint32_t device_minor;
        uint64_t spare3[14];
};

/* A request that is not longer than those above. */
union newer_copy {
        struct fuse_in_header header;
        uint8_t bytes[128];
};

/*
 * newer_translate() - a request as libfuse knows it: the request itself, or a copy, in `copy` or in the second half of this
 * thread's operation_buffer(). FUSE_SETXATTR is one with flags of its own where shared->xattr_flags says so (Linux 5.13).
 * Returns NULL when there is no memory for the copy.
 */
struct fuse_in_header *newer_translate(struct fuse_in_header *request, size_t size, union newer_copy *copy);

/* newer_xattr_flags() - those flags of the FUSE_SETXATTR that this thread answers; 0: it has none. */
uint32_t newer_xattr_flags(void);

#endif
