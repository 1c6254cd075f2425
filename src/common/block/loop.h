/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop.h - a file as a block device.
 *
 * What flexgraft attaches carries a tag where the kernel keeps a name for people (lo_file_name): whose it is can be
 * read off the device, whatever became of the records.
 */
#ifndef FLEXGRAFT_BLOCK_LOOP_H
#define FLEXGRAFT_BLOCK_LOOP_H

#include <linux/loop.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/error.h"

#define LOOP_TAG_SIZE LO_NAME_SIZE

struct loop_device {
        char path[32];   /* "/dev/loop3" */
        uint64_t number; /* makedev() */
        char tag[LOOP_TAG_SIZE];
        uint64_t file_device; /* of the file behind it */
        uint64_t file_inode;
        bool read_only;
        bool ending; /* it goes when its last user does */
};

/*
 * loop_device_tag() - "flexgraft:STATE:DRIVER:KEY:name": hashes of the state directory and the driver, the volume's
 * lock, and what of the name still fits, for people.
 */
void loop_device_tag(const char *state_dir, const char *driver, uint64_t key, const char *name, char *ret_tag);

/* loop_device_tagged_by() - whether a tag is of this state directory, and the lock of its volume. */
bool loop_device_tagged_by(const char *tag, const char *state_dir, uint64_t *ret_key);

/* loop_device_tagged_for() - whether it is of this volume; driver "", there or here, is anybody's. */
bool loop_device_tagged_for(const char *tag, const char *state_dir, const char *driver, uint64_t key);

/* loop_device_look() - what a loop device is. Errors: ENXIO nothing is attached to it; ENOENT no such device. */
int loop_device_look(const char *path, struct loop_device *ret_device, struct error *error);

/*
 * loop_device_each() - every one that is attached, until function() answers other than 0, which is the result. Those
 * that go meanwhile are passed over.
 */
typedef int loop_device_function(const struct loop_device *device, void *argument, struct error *error);
int loop_device_each(loop_device_function *function, void *argument, struct error *error);

/*
 * loop_device_attach() - a free loop device for this file, configured in one call (LOOP_CONFIGURE, Linux 5.8), with
 * direct I/O where the file's filesystem has it.
 *
 * Needs: CAP_SYS_ADMIN.
 * Takes: image_fd, open for writing unless read_only; borrowed.
 */
int loop_device_attach(int image_fd, const char *image, const char *tag, bool read_only, uint64_t offset_bytes,
                       struct loop_device *ret_device, struct error *error);

/*
 * loop_device_keep() - take back that it goes with its last user (after loop_device_detach() of one that was in use).
 * Errors: ENXIO it was gone already.
 */
int loop_device_keep(const struct loop_device *device, struct error *error);

/*
 * loop_device_detach() - let it go, now or with its last user; only if it still has this tag.
 * Gives: ret_lazy, whether somebody still uses it. Gone already is a success.
 */
int loop_device_detach(const struct loop_device *device, bool *ret_lazy, struct error *error);

/* loop_device_grow() - let it see that its file has grown (LOOP_SET_CAPACITY). */
int loop_device_grow(const char *path, struct error *error);

#endif
