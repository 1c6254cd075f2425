/* SPDX-License-Identifier: Apache-2.0 */
#include "block/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"
#include "block/device.h"
#include "block/loop_guard.h"

#define TAG "flexgraft:"
#define BLOCK_LEAST 512U
#define BLOCK_MAX 65536U
#define TRIES_MAX 1000 /* each time that another process took the free device */

static unsigned hash_of(const char *text)
{
        uint64_t hash = hash_text(text);

        return (unsigned)(hash ^ hash >> 32);
}

void loop_device_tag(const char *state_dir, const char *driver, uint64_t key, const char *name, char *ret_tag)
{
        (void)snprintf(ret_tag, LOOP_TAG_SIZE, TAG "%08x:%08x:%016llx:%s", hash_of(state_dir), hash_of(driver),
                       (unsigned long long)key, name);
}

/* The three hexadecimal numbers after the prefix. */
static bool read_tag(const char *tag, uint64_t ret_numbers[3])
{
        if (!text_starts(tag, TAG))
                return false;
        tag += strlen(TAG);
        for (int i = 0; i < 3; i++) {
                char *end;

                ret_numbers[i] = strtoull(tag, &end, 16);
                if (end == tag || *end != ':')
                        return false;
                tag = end + 1;
        }
        return true;
}

bool loop_device_tagged_by(const char *tag, const char *state_dir, uint64_t *ret_key)
{
        uint64_t numbers[3];

        if (!read_tag(tag, numbers) || numbers[0] != hash_of(state_dir))
                return false;
        *ret_key = numbers[2];
        return true;
}

bool loop_device_is_volume(const char *tag)
{
        uint64_t numbers[3];

        return read_tag(tag, numbers);
}

bool loop_device_tagged_for(const char *tag, const char *state_dir, const char *driver, uint64_t key)
{
        uint64_t numbers[3];

        if (!read_tag(tag, numbers) || numbers[0] != hash_of(state_dir) || numbers[2] != key)
                return false;
        return driver[0] == '\0' || numbers[1] == hash_of("") || numbers[1] == hash_of(driver);
}

static int open_loop(const char *path, int access, struct error *error)
{
        int fd = open(path, access | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);

        return fd < 0 ? fail(error, errno, "open", path) : fd;
}

int loop_device_look_at(int fd, const char *path, struct loop_device *ret_device, struct error *error)
{
        struct loop_info64 info;
        struct stat st;

        if (fstat(fd, &st) < 0)
                return fail(error, errno, "fstat", path);
        if (!S_ISBLK(st.st_mode))
                return fail(error, ENOTBLK, "open", path);
        if (ioctl(fd, LOOP_GET_STATUS64, &info) < 0)
                return fail(error, errno, "ioctl", path);
        *ret_device = (struct loop_device){
                .number = st.st_rdev,
                .file_device = info.lo_device,
                .file_inode = info.lo_inode,
                .file_number = info.lo_rdevice,
                .offset_bytes = info.lo_offset,
                .size_bytes = info.lo_sizelimit,
                .read_only = (info.lo_flags & LO_FLAGS_READ_ONLY) != 0,
                .ending = (info.lo_flags & LO_FLAGS_AUTOCLEAR) != 0,
        };
        (void)text_copy(ret_device->path, sizeof ret_device->path, path);
        (void)snprintf(ret_device->tag, sizeof ret_device->tag, "%.*s", LOOP_TAG_SIZE - 1,
                       (const char *)info.lo_file_name);
        return 0;
}

int loop_device_look(const char *path, struct loop_device *ret_device, struct error *error)
{
        cleanup_close int fd = open_loop(path, O_RDONLY, error);

        return fd < 0 ? fd : loop_device_look_at(fd, path, ret_device, error);
}

/* What a FUSE program that is gone leaves; an NFS server without the file; and a filesystem that was shut down. */
bool loop_device_is_end(int r)
{
        return r == -ENOTCONN || r == -ESTALE || r == -EIO;
}

#define DELETED " (deleted)" /* what d_path() in fs/d_path.c adds */

bool loop_device_is_elsewhere(const struct loop_device *device)
{
        char backing[PATH_MAX];
        struct stat st;

        if (!loop_backing_path(device->path + strlen("/dev/"), backing) || backing[0] != '/' ||
            text_ends(backing, DELETED))
                return false; /* nobody knows */
        return fstatat(AT_FDCWD, backing, &st, AT_NO_AUTOMOUNT) < 0 ? file_is_gone(errno) || errno == ENOTDIR
                                                                    : !loop_device_is_over(device, &st);
}

/*
 * Whether what sysfs has of a file can be the file of this path: where that was unmounted meanwhile, it begins at the mount
 * (d_path() in fs/d_path.c), and it may have a note.
 */
static bool is_path_of(char *backing, const char *file)
{
        if (text_ends(backing, DELETED) && !text_ends(file, DELETED))
                backing[strlen(backing) - strlen(DELETED)] = '\0';
        return backing[0] == '/' && text_ends(file, backing);
}

int loop_device_look_lost(const char *path, const char *file, int failure, struct loop_device *ret_device)
{
        char backing[PATH_MAX];
        char text[16];
        struct stat st;

        if (!loop_device_is_end(failure) || stat(path, &st) < 0 || !S_ISBLK(st.st_mode) ||
            !loop_backing_path(path + strlen("/dev/"), backing) || !is_path_of(backing, file))
                return 0;
        *ret_device = (struct loop_device){ .number = st.st_rdev, .lost = true };
        (void)text_copy(ret_device->path, sizeof ret_device->path, path);
        ret_device->ending =
                block_device_attribute(st.st_rdev, "loop/autoclear", text, sizeof text) == 0 && text[0] == '1';
        return 1;
}

bool loop_device_path(uint64_t number, char *ret_path)
{
        char name[LOOP_NAME_SIZE];
        uint64_t index;

        if (!loop_name(number, name) || !text_number(name + strlen("loop"), 1U << 20, &index) ||
            loop_guard_reserves((unsigned)index))
                return false;
        (void)snprintf(ret_path, 32, "/dev/loop%u", (unsigned)index);
        return true;
}

/*
 * The size of its blocks is that of the disk below the image. Left to the kernel, it would be larger once the image
 * shares blocks with another, and what was formatted before could not be mounted (docs/KERNEL.md#loop-devices).
 */
unsigned loop_device_block_bytes(int file_fd)
{
        static const char *const names[] = { "queue/logical_block_size", "../queue/logical_block_size" };
        char text[32];
        uint64_t size;
        struct stat st;

        for (size_t i = 0; i < sizeof names / sizeof names[0] && fstat(file_fd, &st) == 0; i++)
                if (block_device_attribute(st.st_dev, names[i], text, sizeof text) == 0 &&
                    text_number(text, BLOCK_MAX, &size) && size >= BLOCK_LEAST)
                        return (unsigned)size;
        return BLOCK_LEAST;
}

/*
 * The filesystem on a loop device may change a page while it is written. btrfs has made the checksum of that page by then,
 * and reads an error from then on (before its commit 968f19c5b1b7).
 */
static bool can_be_direct(int image_fd)
{
        struct statfs fs;

        return fstatfs(image_fd, &fs) < 0 || fs.f_type != BTRFS_SUPER_MAGIC;
}

/* Returns a descriptor of the device, owned by the caller. */
static int configure(const char *path, int image_fd, const char *image, const char *tag, const struct loop_form *form,
                     struct loop_device *ret_device, struct error *error)
{
        struct loop_config config = { .fd = (unsigned)image_fd,
                                      .block_size = form->sector_bytes != 0 ? form->sector_bytes
                                                                            : loop_device_block_bytes(image_fd),
                                      .info = { .lo_offset = form->offset_bytes, .lo_sizelimit = form->size_bytes } };
        cleanup_close int fd = open_loop(path, form->read_only ? O_RDONLY : O_RDWR, error);
        int writable = 0;
        int r;

        if (fd < 0)
                return fd;
        config.info.lo_flags = (can_be_direct(image_fd) ? LO_FLAGS_DIRECT_IO : 0U) |
                               (form->read_only ? LO_FLAGS_READ_ONLY : 0U) | (form->ends ? LO_FLAGS_AUTOCLEAR : 0U);
        (void)text_copy((char *)config.info.lo_file_name, sizeof config.info.lo_file_name, tag);
        r = ioctl(fd, LOOP_CONFIGURE, &config);
        if (r < 0 && errno == EINVAL) { /* the file's filesystem has no direct I/O */
                config.info.lo_flags &= ~(unsigned)LO_FLAGS_DIRECT_IO;
                r = ioctl(fd, LOOP_CONFIGURE, &config);
        }
        if (r < 0)
                return fail(error, errno, "attach loop device", image);
        /* what an earlier user of this number said with BLKROSET outlives its file */
        r = form->read_only || ioctl(fd, BLKROSET, &writable) == 0 ? loop_device_look_at(fd, path, ret_device, error)
                                                                   : fail(error, errno, "make writable", path);
        if (r < 0)
                (void)ioctl(fd, LOOP_CLR_FD, 0); /* the first failure is reported */
        return r < 0 ? r : fd_take(&fd);
}

/*
 * QEMU has a lock on one byte of an image that it writes, and on another of one that nobody else may write
 * (RAW_LOCK_PERM_BASE and RAW_LOCK_SHARED_BASE of its block/file-posix.c, each plus the number of the right to write).
 */
static int check_no_machine(int image_fd, const char *image, bool read_only, struct error *error)
{
        static const off_t bytes[] = { 101, 201 };

        for (size_t i = 0; i < (read_only ? 1U : 2U); i++) {
                struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = bytes[i], .l_len = 1 };

                if (fcntl(image_fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK)
                        return fail_because(error, EBUSY, "attach loop device", image,
                                            "a virtual machine has it (QEMU's lock is on it); stop the machine first");
        }
        return 0;
}

int loop_device_attach(int image_fd, const char *image, const char *tag, const struct loop_form *form,
                       struct loop_device *ret_device, struct error *error)
{
        cleanup_close int control_fd = open(LOOP_CONTROL, O_RDWR | O_CLOEXEC);
        int r = check_no_machine(image_fd, image, form->read_only, error);

        if (r < 0)
                return r;
        if (control_fd < 0)
                return fail(error, errno, "open", LOOP_CONTROL);
        r = -EBUSY;
        for (int i = 0; r == -EBUSY && i < TRIES_MAX; i++) {
                char path[32];
                int number = ioctl(control_fd, LOOP_CTL_GET_FREE);

                /* a guard's number is not for others, even if it has ended: its container may have it open */
                if (number >= 0 && loop_guard_reserves((unsigned)number))
                        number = ioctl(control_fd, LOOP_CTL_ADD, -1L);
                if (number < 0)
                        return fail(error, errno, "ioctl", LOOP_CONTROL);
                (void)snprintf(path, sizeof path, "/dev/loop%d", number);
                r = configure(path, image_fd, image, tag, form, ret_device, error);
                if (r == -ENOENT)
                        r = fail_because(error, ENOENT, "open", path,
                                         "the kernel has %s, and /dev has not: a node that is a container needs the "
                                         "machine's /dev",
                                         path);
        }
        return r;
}

bool loop_device_is_over(const struct loop_device *device, const struct stat *file)
{
        return device->file_device == file->st_dev && device->file_inode == file->st_ino;
}

static bool is_same(const struct loop_device *one, const struct loop_device *other)
{
        return strcmp(one->tag, other->tag) == 0 && one->file_device == other->file_device &&
               one->file_inode == other->file_inode;
}

int loop_device_hold(const struct loop_device *device, struct error *error)
{
        cleanup_close int fd = open_loop(device->path, O_RDONLY, error);
        struct loop_device now = {};
        int r;

        if (fd < 0)
                return fd;
        /* its number may have been reused; while it is open here, it cannot be */
        if ((r = loop_device_look_at(fd, device->path, &now, error)) < 0)
                return r;
        if (!is_same(&now, device) || now.offset_bytes != device->offset_bytes ||
            now.size_bytes != device->size_bytes || now.read_only != device->read_only)
                return fail(error, ENXIO, "ioctl", device->path);
        return fd_take(&fd);
}

int loop_device_keep(const struct loop_device *device, struct error *error)
{
        cleanup_close int fd = open_loop(device->path, O_RDONLY, error);
        struct loop_device now = {};
        struct loop_info64 info;
        int r;

        if (fd < 0)
                return fd;
        /* its number may have been reused; while it is open here, it cannot be */
        if ((r = loop_device_look_at(fd, device->path, &now, error)) < 0)
                return r;
        if (!is_same(&now, device))
                return fail(error, ENXIO, "ioctl", device->path);
        if (ioctl(fd, LOOP_GET_STATUS64, &info) < 0)
                return fail(error, errno, "ioctl", device->path);
        info.lo_flags &= ~(unsigned)LO_FLAGS_AUTOCLEAR;
        return ioctl(fd, LOOP_SET_STATUS64, &info) < 0 ? fail(error, errno, "ioctl", device->path) : 0;
}

int loop_device_detach(const struct loop_device *device, bool *ret_lazy, struct error *error)
{
        cleanup_close int fd = open_loop(device->path, O_RDONLY, error);
        struct loop_device now = {};
        char backing[PATH_MAX];
        int r;

        *ret_lazy = false;
        if (fd < 0)
                return fd == -ENOENT || fd == -ENXIO ? 0 : fd;
        r = loop_device_look_at(fd, device->path, &now, error);
        if (r == 0 && device->lost)
                return fail_because(error, EAGAIN, "detach loop device", device->path,
                                    "the filesystem of its image, which had ended, answers again; repeat this call");
        if (r == -ENXIO || (r == 0 && !is_same(&now, device)))
                return 0;
        if (r < 0 && !(device->lost && loop_device_is_end(r)))
                return r;
        if (ioctl(fd, LOOP_CLR_FD, 0) < 0 && errno != ENXIO)
                return fail(error, errno, "detach loop device", device->path);
        fd_close(&fd); /* the last close detaches it */
        if (device->lost)
                *ret_lazy = loop_backing_path(device->path + strlen("/dev/"), backing);
        else
                *ret_lazy = loop_device_look(device->path, &now, error) == 0 && is_same(&now, device);
        return 0;
}

bool loop_device_is_looked_at(const struct loop_device *device)
{
        struct block_device named = { .number = device->number };
        struct error ignored;

        (void)text_copy(named.path, sizeof named.path, device->path);
        return device->ending && block_device_check_unused(&named, &ignored) == 0;
}

int loop_device_grow(const char *path, struct error *error)
{
        cleanup_close int fd = open_loop(path, O_RDONLY, error);

        if (fd < 0)
                return fd;
        return ioctl(fd, LOOP_SET_CAPACITY, 0) < 0 ? fail(error, errno, "ioctl", path) : 0;
}
