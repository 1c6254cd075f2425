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

#include "pool/pool.h"
#include "volume/call.h"

#define LOOP_IMAGE_STEP_BYTES 4096U        /* sizes are rounded up to whole pages */
#define LOOP_IMAGE_ALLOCATES "preallocate" /* the option, and the parameter of volume-create */

struct loop_image {
        int pool_fd;
        int fd;
        char name[NAME_MAX + 1];
        char path[PATH_MAX];
        struct stat st;
        struct pool pool; /* it is in; its kind is NULL: in none, where no image is made */
        bool read_only;   /* the file cannot be written */
        bool created;     /* by this call: no other process can have it yet */
        bool watched;     /* loop_image_watch() has asked what it is promised */
        uint64_t promised_bytes;
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

/* loop_image_check_owner() - that the image is no other volume's; after provisioned_hold(), else nothing. Errors: EBUSY. */
int loop_image_check_owner(const struct volume_call *call, const struct loop_image *image, struct error *error);

/*
 * loop_image_check_policy() - whether a volume may have the image that its options name, which may hold the data of
 * others. The volume's own image needs no permission: the one with its name, one that was made for it, one that it has,
 * and one that is still to be made. For others policy.json must list it. Needs the lock of the image. Errors: EACCES.
 */
int loop_image_check_policy(const struct volume_call *call, const struct loop_image *image, struct error *error);

/*
 * loop_image_open() - open the file, or make it where it never was and the options give its size. Errors: those of
 * provision_image_ensure().
 */
int loop_image_open(const struct volume_call *call, struct loop_image *image, struct error *error);

/*
 * loop_image_watch() - before it is attached, and after, since a count meanwhile has not seen it attached: what uses the
 * device gives the image blocks, and can give them back.
 */
int loop_image_watch(const struct volume_call *call, struct loop_image *image, struct error *error);

/*
 * loop_image_sector_bytes() - the sectors that its loop device must have (struct loop_form): those of the disk, or smaller
 * ones that its filesystem, made on another disk, was made with. offset_bytes: where the device begins.
 */
unsigned loop_image_sector_bytes(const struct loop_image *image, uint64_t offset_bytes);

/* loop_image_grow() - make the file larger. Errors: EROFS; those of ftruncate(2). */
int loop_image_grow(const struct volume_call *call, struct loop_image *image, uint64_t size_bytes, struct error *error);

/*
 * loop_held_attach() - put the image of a volume that is not attached on a loop device for the length of this call, with the
 * volume's lock. The record in memory then names the device; none is written, since the device ends with the descriptor,
 * however this process ends.
 *
 * Returns: a descriptor of the device, owned by the caller. Errors: EBUSY the image has another loop device.
 */
int loop_held_attach(struct volume_call *call, struct error *error);

/* loop_image_undo() - after a failure: remove what loop_image_open() made. */
void loop_image_undo(const struct volume_call *call, const struct loop_image *image);

#endif
