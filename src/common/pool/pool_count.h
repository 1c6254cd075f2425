/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool_count.h - the images of a pool's directory, counted one by one; pool_sums.h remembers the result.
 */
#ifndef FLEXGRAFT_POOL_POOL_COUNT_H
#define FLEXGRAFT_POOL_POOL_COUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/error.h"

#define POOL_IMAGE_SUFFIX ".img"

struct pool_use {
        uint64_t full_bytes; /* of images, sparse or not */
        uint64_t owed_bytes; /* of those: blocks that they do not have yet */
};

/* pool_counts() - whether a file of this name counts as an image. */
bool pool_counts(const char *name);

/* pool_image_is_of() - whether it is the name of the image that a volume has unless the options say another. */
bool pool_image_is_of(const char *name, const char *volume);

/* pool_images_each() - call function() with every image until it returns other than 0, which is the result. */
typedef int pool_image_function(const char *name, const struct stat *st, void *argument, struct error *error);
int pool_images_each(int pool_fd, pool_image_function *function, void *argument, struct error *error);

/* pool_image_owed() - the bytes of an image that have no blocks yet. */
uint64_t pool_image_owed(const struct stat *st);

/*
 * pool_image_promised() - the same, and those whose blocks are shared, where the image was made by sharing: each needs
 * one of its own as soon as it is written in one of the images. POOL_IMAGE_SHARES, of its mode, says that it was, or
 * that content is being copied into it: what it is promised changes though it is not attached.
 */
#define POOL_IMAGE_SHARES S_ISVTX
uint64_t pool_image_promised(int pool_fd, const char *name, const struct stat *st);

/* pool_image_promise() - the same of an image by its name; 0 where there is none. */
uint64_t pool_image_promise(int pool_fd, const char *name, struct stat *ret_st);

/* The files of one filesystem that loop devices of the node are over. */
struct pool_attached {
        uint64_t *inodes; /* in order; owned */
        size_t count;
        size_t room;
        uint64_t device;
};

/* pool_attached_add() - look at every loop device. Returns 0 or negative errno. */
int pool_attached_add(struct pool_attached *attached);
bool pool_attached_has(const struct pool_attached *attached, uint64_t inode);
void pool_attached_release(struct pool_attached *attached);
#define cleanup_pool_attached __attribute__((cleanup(pool_attached_release)))

/*
 * pool_mark() - note in files_fd, a pool's directory of pool_sums.h, that an image's blocks may change from now on, and
 * what the sum has for it, unless that is noted. pool_mark_read() - what is noted. Errors: ENOENT it is not; EINVAL.
 */
int pool_mark(int files_fd, const char *name, uint64_t promised_bytes);
int pool_mark_read(int files_fd, const char *name, uint64_t *ret_promised_bytes);

/*
 * pool_count() - count them. files_fd: a directory that then has a mark for each image whose blocks may change, and no
 * others; negative: none. Returns 1: it has. Looks at every loop device of the node for it. The caller has seen to it
 * that nothing which was known before is believed meanwhile.
 */
int pool_count(int pool_fd, int files_fd, struct pool_use *ret_use, struct error *error);

#endif
