/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/syscalls.h"

#define LEASE_TRIES 100 /* each a millisecond */

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

bool file_is_gone(int errnum)
{
        return errnum == ENOENT || errnum == ESTALE;
}

ssize_t file_read(int dirfd, const char *path, char *buffer, size_t size)
{
        cleanup_close int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

        if (fd < 0)
                return -errno;
        return file_read_fd(fd, buffer, size);
}

int file_ensure(int dirfd, const char *path)
{
        int fd = openat(dirfd, path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

        if (fd < 0)
                return -errno;
        fd_close(&fd);
        return 0;
}

DIR *file_list(int dirfd, const char *path)
{
        cleanup_close int fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        DIR *list = fd < 0 ? NULL : fdopendir(fd);

        if (list != NULL)
                (void)fd_take(&fd); /* the stream's now */
        return list;
}

int file_directory_is_empty(int dir_fd)
{
        DIR *list = file_list(dir_fd, ".");
        const struct dirent *entry;
        int r = 1;

        if (list == NULL)
                return -errno;
        while (r > 0 && (entry = readdir(list)) != NULL)
                if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
                        r = 0;
        (void)closedir(list); /* only read from */
        return r;
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
 * What has to be synced for the durability that is asked for. A filesystem with one journal keeps the order of renames;
 * others recover each file for itself (f2fs). Before a rename that replaces another file ext4 also writes the new one's
 * data (auto_da_alloc), not so where the name is new, and xfs and btrfs are told to.
 */
static void choose_syncs(int dirfd, const char *name, enum file_durability durability, bool *ret_file, bool *ret_dir)
{
        struct statfs fs;
        struct stat st;

        *ret_file = *ret_dir = durability == FILE_DURABLE;
        if (durability != FILE_ORDERED)
                return;
        if (fstatfs(dirfd, &fs) < 0 ||
            (fs.f_type != EXT4_SUPER_MAGIC && fs.f_type != XFS_SUPER_MAGIC && fs.f_type != BTRFS_SUPER_MAGIC))
                *ret_file = *ret_dir = true;
        else
                *ret_file = fs.f_type != EXT4_SUPER_MAGIC || fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0;
}

/* mode: 0: for its owner alone. */
static int write_temporary(int dirfd, const char *name, const char *bytes, size_t size, bool sync, mode_t mode)
{
        cleanup_close int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
        int r;

        if (fd < 0)
                return -errno;
        r = file_write_all(fd, bytes, size);
        if (r == 0 && mode != 0 && fchmod(fd, mode) < 0)
                r = -errno;
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

static int replace(int dirfd, const char *name, const char *bytes, size_t size, enum file_durability durability,
                   mode_t mode)
{
        char temporary[NAME_MAX + 1];
        bool sync_file;
        bool sync_dir;
        int r;

        if (temporary_name(name, temporary) < 0)
                return -ENAMETOOLONG;
        choose_syncs(dirfd, name, durability, &sync_file, &sync_dir);
        r = write_temporary(dirfd, temporary, bytes, size, sync_file, mode);
        if (r == 0 && renameat(dirfd, temporary, dirfd, name) < 0)
                r = -errno;
        if (r < 0) {
                (void)unlinkat(dirfd, temporary, 0); /* the first failure is reported */
                return r;
        }
        return sync_dir ? sync_fd(dirfd) : 0;
}

int file_replace(int dirfd, const char *name, const char *bytes, size_t size, enum file_durability durability)
{
        return replace(dirfd, name, bytes, size, durability, 0);
}

int file_replace_for(mode_t mode, int dirfd, const char *name, const char *bytes, size_t size,
                     enum file_durability durability)
{
        return replace(dirfd, name, bytes, size, durability, mode);
}

int file_open_leased(int dirfd, const char *path, int flags, mode_t mode)
{
        int fd;

        for (int i = 0; (fd = openat(dirfd, path, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, mode)) < 0 &&
                        errno == EAGAIN && i < LEASE_TRIES;
             i++)
                clock_pause_ms(1);
        return fd < 0 ? -errno : fd;
}

int file_is_open_once(int fd)
{
        /* who opens it meanwhile waits for the next call, and the signal for that is one that does nothing */
        bool alone = fcntl(fd, F_SETSIG, SIGURG) == 0 && fcntl(fd, F_SETLEASE, F_WRLCK) == 0;

        /* a loop device would keep the lease */
        return alone && fcntl(fd, F_SETLEASE, F_UNLCK) < 0 ? -errno : alone;
}

/* Interfaces of the kernel. */
static const unsigned kernel_filesystems[] = {
        PROC_SUPER_MAGIC,
        SYSFS_MAGIC,
        CGROUP_SUPER_MAGIC,
        CGROUP2_SUPER_MAGIC,
        SECURITYFS_MAGIC,
        DEBUGFS_MAGIC,
        TRACEFS_MAGIC,
        SELINUX_MAGIC,
        SMACK_MAGIC,
        BPF_FS_MAGIC,
        PSTOREFS_MAGIC,
        EFIVARFS_MAGIC,
        DEVPTS_SUPER_MAGIC,
        BINFMTFS_MAGIC,
        NSFS_MAGIC,
        0x19800202 /* mqueue */,
        0x62656570 /* configfs */,
};

bool file_is_of_kernel(int fd)
{
        struct statfs fs;

        if (fstatfs(fd, &fs) < 0)
                return false; /* a dead filesystem; whatever it is, it is none of these */
        for (size_t i = 0; i < sizeof kernel_filesystems / sizeof kernel_filesystems[0]; i++)
                if ((unsigned)fs.f_type == kernel_filesystems[i])
                        return true;
        return false;
}

int file_open_regular_in(int root_fd, const char *path)
{
        cleanup_close int fd = sys_openat2(root_fd, path, O_PATH, 0, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
        char link[32];
        struct stat st;
        int opened;

        if (fd < 0 || fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode) || file_is_of_kernel(fd))
                return -EINVAL;
        (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        opened = open(link, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* of the same inode */
        return opened < 0 ? -errno : opened;
}
