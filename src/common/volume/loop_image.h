/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop_image.h - the image file of a loop volume: found by the options, the record or what volume-create made; made.
 */
#ifndef FLEXGRAFT_VOLUME_LOOP_IMAGE_H
#define FLEXGRAFT_VOLUME_LOOP_IMAGE_H

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "volume/call.h"

#define LOOP_IMAGE_STEP_BYTES 4096U /* sizes are rounded up to whole pages */

struct loop_image {
        int pool_fd;
        int fd;
        char name[NAME_MAX + 1];
        char path[PATH_MAX];
        struct stat st;
        bool read_only; /* the file cannot be written */
        bool made;      /* by this call, or being made */
        bool created;   /* by this call: no other process can have it yet */
};

void loop_image_release(struct loop_image *image);
#define cleanup_loop_image __attribute__((cleanup(loop_image_release)))
#define LOOP_IMAGE_NONE                                                                                                \
        {                                                                                                              \
                .pool_fd = -EBADF, .fd = -EBADF                                                                        \
        }

/* loop_image_locate() - the pool and the file's name, as the options say, or where they say nothing the record. */
int loop_image_locate(const struct volume_call *call, struct loop_image *image, struct error *error);

/* loop_image_locate_own() - the same, but where there is a record it decides. */
int loop_image_locate_own(const struct volume_call *call, struct loop_image *image, struct error *error);

/* loop_image_look() - open the file, read-only where it cannot be written. Errors: ENOENT; EINVAL no regular file. */
int loop_image_look(struct loop_image *image, struct error *error);

/* loop_image_open() - open the file, or make it where it is missing and the options give its size. */
int loop_image_open(const struct volume_call *call, struct loop_image *image, struct error *error);

#endif
