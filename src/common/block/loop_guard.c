/* SPDX-License-Identifier: Apache-2.0 */
#include "block/loop_guard.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/text.h"

#define TAG "flexgraft-raw:"
#define OUTER_FLAGS (LO_FLAGS_AUTOCLEAR | LO_FLAGS_PARTSCAN)
#define NOWHERE ((uint64_t)1 << 62) /* beyond the end of every device */
#define TRIES_MAX 64                /* each time that a number is in use */
#define PAIRS_MAX 4                 /* of loop devices, one after the other */
#define WAIT_MS 20                  /* udev opens a device that changes, for a moment */
#define WAITS_MAX 10
#define WAITS_KEEPER_MAX 100 /* without the keeper the outer device is not guarded */

static void path_of(unsigned index, char ret_path[LOOP_GUARD_PATH_SIZE])
{
        (void)snprintf(ret_path, LOOP_GUARD_PATH_SIZE, "/dev/loop%u", index);
}

static int open_loop(unsigned index, int access)
{
        char path[LOOP_GUARD_PATH_SIZE];
        int fd;

        path_of(index, path);
        fd = open(path, access | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
        return fd < 0 ? -errno : fd;
}

/* The number that loop devices count by. */
static int index_of(uint64_t number, unsigned *ret_index)
{
        char name[LOOP_NAME_SIZE];

        if (!loop_name(number, name) || !loop_guard_has_name(name))
                return -ENXIO;
        *ret_index = (unsigned)strtoul(name + strlen("loop"), NULL, 10);
        return *ret_index % 2 == 0 ? 0 : -ENXIO;
}

static void name_keeper(uint64_t key, char ret_name[LO_NAME_SIZE])
{
        (void)snprintf(ret_name, LO_NAME_SIZE, TAG "%016llx", (unsigned long long)key);
}

/* Whether this is the keeper of a guard with this number and key. No container can open it and change its name. */
static bool is_keeper(int fd, uint64_t number, uint64_t key, struct loop_info64 *ret_info)
{
        char name[LO_NAME_SIZE];

        name_keeper(key, name);
        return ioctl(fd, LOOP_GET_STATUS64, ret_info) == 0 && ret_info->lo_rdevice == number &&
               strncmp((const char *)ret_info->lo_file_name, name, sizeof name) == 0;
}

static int configure(int fd, int backing_fd, unsigned block_size, const struct loop_info64 *info)
{
        struct loop_config config = { .fd = (unsigned)backing_fd, .block_size = block_size, .info = *info };

        if (ioctl(fd, LOOP_CONFIGURE, &config) == 0)
                return 0;
        if (errno != EINVAL)
                return -errno;
        config.info.lo_flags &= ~(unsigned)LO_FLAGS_DIRECT_IO;
        return ioctl(fd, LOOP_CONFIGURE, &config) < 0 ? -errno : 0;
}

/* Attaches the keeper; kept: for longer than the returned descriptor. */
static int attach_keeper(unsigned index, uint64_t key, bool kept)
{
        cleanup_close int outer_fd = open_loop(index, O_RDONLY);
        cleanup_close int fd = open_loop(index + 1, O_RDONLY);
        cleanup_close int control_fd = -EBADF;
        struct loop_info64 info = { .lo_flags = LO_FLAGS_READ_ONLY | (kept ? 0U : LO_FLAGS_AUTOCLEAR) };
        int r;

        if (outer_fd >= 0 && (fd == -ENOENT || fd == -ENXIO)) { /* somebody has taken the unused device away */
                control_fd = open(LOOP_CONTROL, O_RDWR | O_CLOEXEC);
                (void)ioctl(control_fd, LOOP_CTL_ADD, (unsigned long)index + 1);
                fd = open_loop(index + 1, O_RDONLY);
        }
        if (outer_fd < 0 || fd < 0)
                return outer_fd < 0 ? outer_fd : fd;
        /*
         * udev has the kernel read the partition table of a disk when a process closes its node in /dev that had it open for
         * writing, as this one does, and a pod: but not while another has a lock of it. The keeper has it with its file.
         */
        (void)flock(outer_fd, LOCK_SH | LOCK_NB);
        name_keeper(key, (char *)info.lo_file_name);
        r = configure(fd, outer_fd, 0, &info);
        return r < 0 ? r : fd_take(&fd);
}

/* Removes unused loop devices, so that LOOP_CTL_GET_FREE does not give them to others. */
static void discard(int control_fd, unsigned index)
{
        for (unsigned i = index; i < index + 2; i++)
                for (int wait = 0; wait < WAITS_MAX; wait++) {
                        if (ioctl(control_fd, LOOP_CTL_REMOVE, (unsigned long)i) >= 0 || errno != EBUSY)
                                break;
                        clock_pause_ms(WAIT_MS);
                }
}

/* Two new loop devices of neighbouring numbers. */
static int add_pair(int control_fd, unsigned *ret_index)
{
        unsigned end = LOOP_GUARD_END;

        for (int i = 0; i < TRIES_MAX; i++) {
                unsigned index;

                if (getrandom(&index, sizeof index, 0) != (ssize_t)sizeof index)
                        return -EIO;
                index = (LOOP_GUARD_FIRST + index % (end - LOOP_GUARD_FIRST)) & ~1U;
                if (ioctl(control_fd, LOOP_CTL_ADD, (unsigned long)index) < 0) {
                        if (errno == EINVAL && end / 2 > LOOP_GUARD_FIRST)
                                end /= 2; /* the kernel keeps minor numbers for partitions */
                        else if (errno != EEXIST)
                                return -errno;
                        continue;
                }
                if (ioctl(control_fd, LOOP_CTL_ADD, (unsigned long)index + 1) >= 0) {
                        *ret_index = index;
                        return 0;
                }
                (void)ioctl(control_fd, LOOP_CTL_REMOVE, (unsigned long)index); /* unused, it does no harm */
                if (errno != EEXIST)
                        return -errno;
        }
        return -EBUSY;
}

/* udev makes the names in /dev/mapper links. */
static int open_source(const char *path, uint64_t device, bool writes, unsigned *ret_block_size, struct error *error)
{
        cleanup_close int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
        struct stat st;
        int size;

        if (fd < 0 && !writes) /* a device that nobody may write to */
                fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (fd < 0 || fstat(fd, &st) < 0)
                return fail(error, errno, "open", path);
        if (!S_ISBLK(st.st_mode) || st.st_rdev != device)
                return fail(error, ESTALE, "open", path);
        *ret_block_size = ioctl(fd, BLKSSZGET, &size) < 0 || size < 512 || size > 4096 ? 0 : (unsigned)size;
        return fd_take(&fd);
}

static bool can_write(int fd)
{
        return (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDWR;
}

/*
 * The outer device ends with its last user: the keeper.
 *
 * A process that may open it for writing can set LO_FLAGS_PARTSCAN, which reads the partition table, and nothing can
 * clear it. So it is set here, while the device has no size: set again, it does nothing. BLKROSET refuses writes only:
 * the node of such a device can be opened for writing.
 */
static int attach_outer(int fd, int source_fd, unsigned block_size, bool writes)
{
        struct loop_info64 info = { .lo_flags = OUTER_FLAGS | LO_FLAGS_DIRECT_IO,
                                    .lo_offset = NOWHERE,
                                    .lo_file_name = TAG };
        int read_only = 1;
        int r;

        /*
         * LOOP_CHANGE_FD asks for no permission, but for LO_FLAGS_READ_ONLY (drivers/block/loop.c): a container could put
         * a file of its own behind it, and stop everyone who asks the loop device for its file. So the flag is not set
         * where the device can be written to.
         */
        if (!writes && (!can_write(fd) || !can_write(source_fd)))
                info.lo_flags |= LO_FLAGS_READ_ONLY;
        r = configure(fd, source_fd, block_size, &info);
        if (r < 0)
                return r;
        info.lo_offset = 0;
        if (ioctl(fd, LOOP_SET_STATUS64, &info) < 0 || (!writes && ioctl(fd, BLKROSET, &read_only) < 0))
                return -errno;
        return 0;
}

static int attach_pair(unsigned index, int source_fd, unsigned block_size, uint64_t key, bool writes,
                       uint64_t *ret_number)
{
        cleanup_close int fd = open_loop(index, O_RDWR);
        struct stat st;
        int r;

        if (fd < 0)
                return fd;
        if (fstat(fd, &st) < 0)
                return -errno;
        if ((r = attach_outer(fd, source_fd, block_size, writes)) < 0)
                return r;
        *ret_number = st.st_rdev;
        return attach_keeper(index, key, /* kept= */ false);
}

/*
 * Who asks for an unused loop device, as kubelet does for each block volume, gets the one of the lowest number: not one
 * of an ended guard, which its container can have opened again.
 */
static void leave_another(int control_fd)
{
        int number = ioctl(control_fd, LOOP_CTL_GET_FREE);

        if (number >= 0 && loop_guard_reserves((unsigned)number))
                (void)ioctl(control_fd, LOOP_CTL_ADD, -1L);
}

int loop_guard_make(const char *path, uint64_t device, uint64_t key, bool writes, uint64_t *ret_number,
                    struct error *error)
{
        cleanup_close int control_fd = open(LOOP_CONTROL, O_RDWR | O_CLOEXEC);
        cleanup_close int source_fd = -EBADF;
        unsigned block_size = 0;
        unsigned index = 0;
        int r;

        if (control_fd < 0 && (errno == ENOENT || errno == ENODEV || errno == ENXIO))
                return fail_because(error, EOPNOTSUPP, "guard device", path,
                                    "the node has no loop devices (%s), and a raw device is handed out behind one",
                                    LOOP_CONTROL);
        if (control_fd < 0)
                return fail(error, errno, "open", LOOP_CONTROL);
        source_fd = open_source(path, device, writes, &block_size, error);
        if (source_fd < 0)
                return source_fd;
        for (int i = 0; i < PAIRS_MAX; i++) {
                r = add_pair(control_fd, &index);
                if (r < 0)
                        break;
                r = attach_pair(index, source_fd, block_size, key, writes, ret_number);
                if (r >= 0) {
                        leave_another(control_fd);
                        return r;
                }
                discard(control_fd, index);
                if (r != -ENOENT && r != -ENXIO && r != -ENODEV && r != -EBUSY)
                        break; /* else loop_guard_tidy() took one of them away, or losetup(8) took it for free */
        }
        return fail(error, -r, "guard device", path);
}

int loop_guard_keep(int keeper_fd, struct error *error)
{
        struct loop_info64 info;

        if (ioctl(keeper_fd, LOOP_GET_STATUS64, &info) < 0)
                return fail(error, errno, "guard device", "keeper");
        info.lo_flags &= ~(unsigned)LO_FLAGS_AUTOCLEAR;
        return ioctl(keeper_fd, LOOP_SET_STATUS64, &info) < 0 ? fail(error, errno, "guard device", "keeper") : 0;
}

int loop_guard_hold(uint64_t number, uint64_t key)
{
        cleanup_close int keeper_fd = -EBADF;
        cleanup_close int fd = -EBADF;
        struct loop_info64 info;
        unsigned index;

        if (index_of(number, &index) < 0)
                return -ENXIO;
        fd = open_loop(index, O_RDONLY); /* first: then its keeper stays, or comes back */
        keeper_fd = open_loop(index + 1, O_RDONLY);
        /* one that is not kept ends with the call that made it, which may have been killed */
        return fd >= 0 && keeper_fd >= 0 && is_keeper(keeper_fd, number, key, &info) &&
                               (info.lo_flags & LO_FLAGS_AUTOCLEAR) == 0
                       ? fd_take(&fd)
                       : -ENXIO;
}

int loop_guard_flush(uint64_t number, uint64_t key, struct error *error)
{
        cleanup_close int fd = loop_guard_hold(number, key);

        return fd >= 0 && fsync(fd) < 0 ? fail(error, errno, "fsync", "loop device of a container") : 0;
}

int loop_guard_grow(uint64_t number, uint64_t key, struct error *error)
{
        cleanup_close int fd = loop_guard_hold(number, key);

        if (fd < 0)
                return 0;
        return ioctl(fd, LOOP_SET_CAPACITY, 0) < 0 ? fail(error, errno, "grow", "loop device of a container") : 0;
}

int loop_guard_show_whole(int fd, struct error *error)
{
        struct loop_info64 info;

        if (ioctl(fd, LOOP_GET_STATUS64, &info) < 0)
                return fail(error, errno, "guard device", "loop device of a container");
        if (info.lo_offset == 0 && info.lo_sizelimit == 0)
                return 0;
        info = (struct loop_info64){ .lo_flags = OUTER_FLAGS, .lo_file_name = TAG };
        for (int wait = 0; wait < WAITS_MAX; wait++) {
                if (ioctl(fd, LOOP_SET_STATUS64, &info) == 0)
                        return 0;
                if (errno != EAGAIN) /* it was written to meanwhile */
                        break;
                clock_pause_ms(WAIT_MS);
        }
        return fail_because(error, EBUSY, "guard device", "loop device of a container",
                            "a process that has it open shows only a part of it, and it cannot be changed back: %s",
                            error_text(errno));
}

/*
 * Of a guard without its keeper. losetup(8), which takes any number when those below are in use, may have put a file
 * behind a number that an earlier call gave back and was killed before it could forget it.
 */
static int of_nobody_else(unsigned index)
{
        char name[16];
        char path[PATH_MAX];

        (void)snprintf(name, sizeof name, "loop%u", index);
        return !loop_backing_path(name, path) || text_starts(path, "/dev/") ? 0 : -ENXIO;
}

/* Detaches the keeper: 0; or -ENXIO this is no guard with this key. */
static int detach_keeper(unsigned index, uint64_t number, uint64_t key)
{
        cleanup_close int fd = open_loop(index + 1, O_RDONLY);
        struct loop_info64 info;

        if (fd < 0)
                return fd == -ENOENT || fd == -ENXIO ? of_nobody_else(index) : fd;
        if (ioctl(fd, LOOP_GET_STATUS64, &info) < 0 && errno == ENXIO)
                return of_nobody_else(index); /* an earlier call was killed after it */
        if (!is_keeper(fd, number, key, &info))
                return -ENXIO;
        return ioctl(fd, LOOP_CLR_FD, 0) < 0 && errno != ENXIO ? -errno : 0;
}

/* With the keeper gone and this the only descriptor, LOOP_CLR_FD detaches; else it only sets a flag. */
static bool detach_outer(int fd, unsigned index)
{
        for (int wait = 0; wait < WAITS_MAX; wait++) {
                /* else what was written to it, and not yet to the device, is lost with it */
                if (loop_guard_is_bound(index))
                        (void)fsync(fd);
                if ((ioctl(fd, LOOP_CLR_FD, 0) < 0 && errno == ENXIO) || !loop_guard_is_bound(index))
                        return true;
                clock_pause_ms(WAIT_MS);
        }
        return false;
}

int loop_guard_release(uint64_t number, uint64_t key, struct error *error)
{
        cleanup_close int control_fd = -EBADF;
        cleanup_close int fd = -EBADF;
        char path[LOOP_GUARD_PATH_SIZE];
        unsigned index;
        int r;

        if (index_of(number, &index) < 0)
                return 0;
        path_of(index, path);
        fd = open_loop(index, O_RDONLY); /* while it is open, its number is not used again */
        if (fd < 0)
                return fd == -ENOENT || fd == -ENXIO ? 0 : fail(error, -fd, "open", path);
        control_fd = open(LOOP_CONTROL, O_RDWR | O_CLOEXEC);
        if (control_fd < 0)
                return fail(error, errno, "open", LOOP_CONTROL);
        (void)fsync(fd); /* most of it while the keeper is there still: it can take long */
        r = detach_keeper(index, number, key);
        if (r < 0)
                return r == -ENXIO ? 0 : fail(error, -r, "detach loop device", path);
        if (detach_outer(fd, index)) {
                fd_close(&fd);
                discard(control_fd, index);
                return 0;
        }
        for (int wait = 0; wait < WAITS_KEEPER_MAX; wait++) {
                cleanup_close int keeper_fd = attach_keeper(index, key, /* kept= */ true);

                if (keeper_fd >= 0)
                        return 1;
                r = keeper_fd;
                clock_pause_ms(WAIT_MS);
        }
        return fail(error, -r, "guard device", path);
}

bool loop_guard_path(uint64_t number, char ret_path[LOOP_GUARD_PATH_SIZE])
{
        unsigned index;

        if (index_of(number, &index) < 0)
                return false;
        path_of(index, ret_path);
        return true;
}

bool loop_guard_is_shown(int fd)
{
        char ignored[LOOP_GUARD_PATH_SIZE];
        struct loop_info64 info;

        return ioctl(fd, LOOP_GET_STATUS64, &info) == 0 && info.lo_rdevice != 0 &&
               loop_guard_path(info.lo_rdevice, ignored);
}

bool loop_guard_exists(uint64_t number)
{
        unsigned index;

        return index_of(number, &index) == 0 && loop_guard_is_bound(index + 1);
}
