/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"

ssize_t file_read_fd(int fd, char *buffer, size_t size)
{
        size_t length = 0;

        while (length < size) {
                ssize_t n = read(fd, buffer + length, size - length);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                if (n == 0) {
                        buffer[length] = '\0';
                        return (ssize_t)length;
                }
                length += (size_t)n;
        }
        return -EFBIG;
}

ssize_t file_read(int dirfd, const char *path, char *buffer, size_t size)
{
        cleanup_close int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

        if (fd < 0)
                return -errno;
        return file_read_fd(fd, buffer, size);
}

int file_write_all(int fd, const char *bytes, size_t size)
{
        while (size > 0) {
                ssize_t n = write(fd, bytes, size);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                bytes += n;
                size -= (size_t)n;
        }
        return 0;
}

static int sync_fd(int fd)
{
        int r;

        do
                r = fsync(fd);
        while (r < 0 && errno == EINTR);
        return r < 0 ? -errno : 0;
}

/*
 * Whether the filesystem writes a file's data before a rename that replaces another file with it: ext4 (auto_da_alloc)
 * and btrfs do, xfs does not. Their journals keep the order of renames.
 */
static bool orders_renames(int dirfd)
{
        struct statfs fs;

        return fstatfs(dirfd, &fs) == 0 && fs.f_type == EXT4_SUPER_MAGIC;
}

static int write_temporary(int dirfd, const char *name, const char *bytes, size_t size, bool sync)
{
        cleanup_close int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
        int r;

        if (fd < 0)
                return -errno;
        r = file_write_all(fd, bytes, size);
        if (r == 0 && sync)
                r = sync_fd(fd);
        return r;
}

static int temporary_name(const char *name, char *ret_temporary)
{
        return snprintf(ret_temporary, NAME_MAX + 1, ".%s.tmp", name) > NAME_MAX ? -ENAMETOOLONG : 0;
}

void file_remove_temporary(int dirfd, const char *name)
{
        char temporary[NAME_MAX + 1];

        if (temporary_name(name, temporary) == 0)
                (void)unlinkat(dirfd, temporary, 0); /* usually there is none */
}

int file_replace(int dirfd, const char *name, const char *bytes, size_t size, enum file_durability durability)
{
        char temporary[NAME_MAX + 1];
        int r;

        if (temporary_name(name, temporary) < 0)
                return -ENAMETOOLONG;
        r = write_temporary(dirfd, temporary, bytes, size,
                            durability == FILE_DURABLE || (durability == FILE_ORDERED && !orders_renames(dirfd)));
        if (r == 0 && renameat(dirfd, temporary, dirfd, name) < 0)
                r = -errno;
        if (r < 0) {
                (void)unlinkat(dirfd, temporary, 0); /* the first failure is reported */
                return r;
        }
        return durability == FILE_DURABLE ? sync_fd(dirfd) : 0;
}
