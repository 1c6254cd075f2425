/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop.h - a file as a block device.
 *
 * flexgraft writes a tag into the name that the kernel keeps of a loop device (lo_file_name), so that the owner of a
 * device is known even without records.
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
        uint64_t file_device; /* of the image file */
        uint64_t file_inode;
        uint64_t file_number;  /* makedev(), where the file is a block device; 0 */
        uint64_t offset_bytes; /* what of the file it shows */
        uint64_t size_bytes;   /* 0: up to the file's end */
        bool read_only;
        bool ending; /* the kernel detaches it after its last use (autoclear) */
        bool lost;   /* of loop_device_look_lost(): only path, number and ending are known */
};

/*
 * loop_device_tag() - "flexgraft:STATE:DRIVER:KEY:name": hashes of the state directory and of the driver, the volume's
 * lock, and as much of the name as fits, for people.
 */
void loop_device_tag(const char *state_dir, const char *driver, uint64_t key, const char *name, char *ret_tag);

/* loop_device_tagged_by() - whether a tag names this state directory; ret_key: the lock of its volume. */
bool loop_device_tagged_by(const char *tag, const char *state_dir, uint64_t *ret_key);

/* loop_device_is_volume() - whether a tag is that of a volume, of whatever state directory. */
bool loop_device_is_volume(const char *tag);

/* loop_device_tagged_for() - whether a tag names this volume; an empty driver, in either, matches any. */
bool loop_device_tagged_for(const char *tag, const char *state_dir, const char *driver, uint64_t key);

/* loop_device_look() - the state of a loop device. Errors: ENXIO no file is attached; ENOENT no such device. */
int loop_device_look(const char *path, struct loop_device *ret_device, struct error *error);

/*
 * loop_device_look_soon() - the same, which waits two seconds at most for the file's filesystem, as a server that is silent may
 * never answer. Errors: ETIMEDOUT.
 */
int loop_device_look_soon(const char *path, struct loop_device *ret_device, struct error *error);

/* loop_device_is_end() - whether a failure of loop_device_look() means that the file's filesystem has ended. */
bool loop_device_is_end(int r);

/*
 * loop_device_look_lost() - the same of a device whose file's filesystem has ended or was shut down: the kernel tells its
 * tag no more, but still its file's path. failure: that of loop_device_look(). Returns 1: it is over the file of that
 * path; 0: it is not, or its filesystem has not ended.
 */
int loop_device_look_lost(const char *path, const char *file, int failure, struct loop_device *ret_device);

/* loop_device_look_at() - the same of an open descriptor, borrowed; path: the device's. Waits for the file's filesystem. */
int loop_device_look_at(int fd, const char *path, struct loop_device *ret_device, struct error *error);

/* loop_device_is_over() - whether it shows this file, or a part of it. */
bool loop_device_is_over(const struct loop_device *device, const struct stat *file);

/*
 * loop_device_is_elsewhere() - whether its file has a path that leads to no such file here: that of another node with the
 * same kernel, as where nodes are containers, of which each sees the loop devices of all. A tag says nothing then, as their
 * state directories have one path.
 */
bool loop_device_is_elsewhere(const struct loop_device *device);

/* loop_device_path() - the path of a loop device, 32 bytes, by makedev(); false: it is none, or a guard's. */
bool loop_device_path(uint64_t number, char *ret_path);

/*
 * loop_device_each() - call function() for every attached device, until it returns other than 0, which is the result.
 * Devices that are detached meanwhile are skipped, and so are those whose file's filesystem fails or does not answer for
 * two seconds (a dead NFS or FUSE server's): that is not one that the caller has just used.
 */
typedef int loop_device_function(const struct loop_device *device, void *argument, struct error *error);
int loop_device_each(loop_device_function *function, void *argument, struct error *error);

/*
 * loop_device_each_named() - loop_device_each() for a caller that looks for a device whose file should have this name,
 * without a "/". Errors: also ETIMEDOUT, where the file of a device that does not answer has it.
 */
int loop_device_each_named(const char *name, loop_device_function *function, void *argument, struct error *error);

/*
 * loop_device_each_over() - loop_device_each() for a caller that only wants the devices over one file, which costs the
 * same however many the node has where the kernel tells that the file is nobody else's (file_is_open_once()); else
 * function() is called for all, as there. Errors: also that of a device that does not answer whose file has the same name.
 *
 * Takes:  fd, the caller's only descriptor of the file, O_PATH ones not counted; borrowed.
 */
int loop_device_each_over(int fd, loop_device_function *function, void *argument, struct error *error);

/* What of a file a loop device shows, and how. */
struct loop_form {
        bool read_only;
        bool ends; /* the kernel detaches it after its last use (autoclear) */
        uint64_t offset_bytes;
        uint64_t size_bytes;   /* 0: up to the file's end */
        unsigned sector_bytes; /* 0: as the disk below the file has them */
};

/*
 * loop_device_block_bytes() - the size of the blocks of the disk below a file: that of a loop device over the file, for
 * which no other is given.
 */
unsigned loop_device_block_bytes(int file_fd);

/*
 * loop_device_attach() - attach a file to a free loop device, in one call (LOOP_CONFIGURE, Linux 5.8), with direct I/O
 * if the file's filesystem supports it.
 *
 * Needs:   CAP_SYS_ADMIN.
 * Takes:   image_fd, open for writing unless read_only; borrowed.
 * Returns: a descriptor of the device, owned by the caller; one that ends is not detached while it is open.
 */
int loop_device_attach(int image_fd, const char *image, const char *tag, const struct loop_form *form,
                       struct loop_device *ret_device, struct error *error);

/*
 * loop_device_hold() - hold an attached device open, so that it is not detached meanwhile.
 * Returns: a descriptor, owned by the caller. Errors: ENXIO it shows something else by now, or nothing.
 */
int loop_device_hold(const struct loop_device *device, struct error *error);

/*
 * loop_device_keep() - undo loop_device_detach() of a device that is in use: clear its autoclear flag.
 * Errors: ENXIO it is detached already.
 */
int loop_device_keep(const struct loop_device *device, struct error *error);

/*
 * loop_device_detach() - detach it, now or after its last use; only if it still has this tag and file, or is lost.
 * Errors: EAGAIN it was lost, and answers again.
 * Gives: ret_lazy, whether it is still in use. A device that is already detached is a success.
 */
int loop_device_detach(const struct loop_device *device, bool *ret_lazy, struct error *error);

/*
 * loop_device_is_looked_at() - whether it ends as soon as a process closes it that only looks at it, as udev, blkid and
 * losetup do: it is neither mounted nor opened exclusively.
 */
bool loop_device_is_looked_at(const struct loop_device *device);

/* loop_device_grow() - adopt the file's new size (LOOP_SET_CAPACITY). */
int loop_device_grow(const char *path, struct error *error);

#endif
