/* SPDX-License-Identifier: Apache-2.0 */
#include "block/content.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

#define ERASE_STEP_BYTES ((uint64_t)256 * 1024 * 1024)

static int open_disk(const struct block_device *device, int flags, struct error *error)
{
        const char *path = device->path;
        cleanup_close int fd = open(path, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        struct stat st;

        if (fd < 0)
                return fail(error, errno, "open device", path);
        if (fstat(fd, &st) < 0)
                return fail(error, errno, "fstat", path);
        if (!S_ISBLK(st.st_mode) || st.st_rdev != device->number)
                return fail(error, ESTALE, "open device", path);
        return fd_take(&fd);
}

int content_erase(const struct block_device *device, struct error *error)
{
        const char *path = device->path;
        cleanup_close int fd = open_disk(device, O_RDWR | O_EXCL, error);
        uint64_t size_bytes;

        if (fd < 0)
                return fd;
        if (ioctl(fd, BLKGETSIZE64, &size_bytes) < 0)
                return fail(error, errno, "erase", path);
        for (uint64_t at = 0; at < size_bytes; at += ERASE_STEP_BYTES) {
                uint64_t left = size_bytes - at;
                uint64_t range[2] = { at, left < ERASE_STEP_BYTES ? left : ERASE_STEP_BYTES };

                if (ioctl(fd, BLKZEROOUT, range) < 0)
                        return fail(error, errno, "erase", path);
        }
        return fsync(fd) < 0 ? fail(error, errno, "fsync", path) : 0;
}

int content_is_blank(const struct block_device *device, struct error *error)
{
        cleanup_close int fd = open_disk(device, O_RDONLY, error);
        static char bytes[65536];
        ssize_t n;

        if (fd < 0)
                return fd;
        while ((n = read(fd, bytes, sizeof bytes)) > 0)
                for (ssize_t i = 0; i < n; i++)
                        if (bytes[i] != 0)
                                return 0;
        return n < 0 ? fail(error, errno, "read", device->path) : 1;
}
