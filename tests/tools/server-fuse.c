/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server-fuse - a FUSE filesystem that decides who may do what by itself, as an NFS server with AUTH_SYS and root_squash.
 *
 *   server-fuse DIRECTORY MOUNTPOINT
 *
 * What DIRECTORY holds, each request with the ids and the supplementary groups of the thread that makes it; root's are
 * those of nobody. A file called only-N can be opened by user N alone, whatever its mode says, and one called not-N by
 * nobody who is in the supplementary group N, as with an ACL that the mode does not show. One called stop-N is as only-N, and
 * the filesystem stops (SIGSTOP) when it is asked to open it, before it says more. It has no extended attributes, and
 * stops (SIGSTOP) when it is asked for one that is called user.stop. The kernel checks nothing (no default_permissions), and
 * cannot id-map it. The name of a file called long is listed as 600 letters. A link
 * called turns leads where the file turns-to says, and a file called pieces is read 1,000 bytes at a time. It goes on in the background until it is unmounted.
 */
#define _GNU_SOURCE
#define FUSE_USE_VERSION 31
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse3/fuse.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NOBODY 65534

static int root_fd;

/* One thread answers all: the next request is somebody else's. */
static const char *as_caller(const char *path)
{
        const struct fuse_context *context = fuse_get_context();
        gid_t groups[1024];
        int count = fuse_getgroups(1024, groups);
        uid_t uid = context->uid != 0 ? context->uid : NOBODY;
        gid_t gid = context->uid != 0 ? context->gid : NOBODY;

        setfsuid(0);
        if (context->uid == 0 || count < 0)
                count = 0;
        syscall(SYS_setgroups, count < 1024 ? count : 1024, groups);
        setfsgid(gid);
        setfsuid(uid);
        return path[1] == '\0' ? "." : path + 1;
}

static int result(int r)
{
        return r < 0 ? -errno : 0;
}

static int get_attributes(const char *path, struct stat *st, struct fuse_file_info *file)
{
        path = as_caller(path);
        return result(file != NULL ? fstat((int)file->fh, st) : fstatat(root_fd, path, st, AT_SYMLINK_NOFOLLOW));
}

/* Asked for access(2) and chdir(2) alone. */
static int may_access(const char *path, int mode)
{
        return result(faccessat(root_fd, as_caller(path), mode, AT_EACCESS | AT_SYMLINK_NOFOLLOW));
}

static int read_link(const char *path, char *text, size_t size)
{
        ssize_t n = readlinkat(root_fd, as_caller(path), text, size - 1);

        if (strcmp(path, "/turns") == 0) {
                int fd = openat(root_fd, "turns-to", O_RDONLY | O_CLOEXEC);

                n = fd < 0 ? -1 : read(fd, text, size - 1);
                (void)close(fd); /* only read from, or not open */
        }
        if (n >= 0)
                text[n] = '\0';
        return n < 0 ? -errno : 0;
}

static int make_node(const char *path, mode_t mode, dev_t device)
{
        return result(mknodat(root_fd, as_caller(path), mode, device));
}

static int make_directory(const char *path, mode_t mode)
{
        return result(mkdirat(root_fd, as_caller(path), mode));
}

static int remove_file(const char *path)
{
        return result(unlinkat(root_fd, as_caller(path), 0));
}

static int remove_directory(const char *path)
{
        return result(unlinkat(root_fd, as_caller(path), AT_REMOVEDIR));
}

static int make_link(const char *text, const char *path)
{
        return result(symlinkat(text, root_fd, as_caller(path)));
}

static int make_hard_link(const char *from, const char *to)
{
        return result(linkat(root_fd, as_caller(from), root_fd, as_caller(to), 0));
}

static int rename_file(const char *from, const char *to, unsigned flags)
{
        return result(renameat2(root_fd, as_caller(from), root_fd, as_caller(to), flags));
}

static int change_mode(const char *path, mode_t mode, struct fuse_file_info *file)
{
        path = as_caller(path);
        return result(file != NULL ? fchmod((int)file->fh, mode) : fchmodat(root_fd, path, mode, 0));
}

static int change_owner(const char *path, uid_t uid, gid_t gid, struct fuse_file_info *file)
{
        path = as_caller(path);
        return result(file != NULL ? fchown((int)file->fh, uid, gid)
                                   : fchownat(root_fd, path, uid, gid, AT_SYMLINK_NOFOLLOW));
}

static int has_group(gid_t group)
{
        gid_t groups[1024];
        int count = fuse_getgroups(1024, groups);

        for (int i = 0; i < count && i < 1024; i++)
                if (groups[i] == group)
                        return 1;
        return 0;
}

static int open_as(const char *path, int flags, mode_t mode)
{
        const char *name = strrchr(path, '/') + 1;
        gid_t not ;
        uid_t only;

        path = as_caller(path);
        if (sscanf(name, "stop-%u", &only) == 1)
                raise(SIGSTOP);
        if ((sscanf(name, "only-%u", &only) == 1 || sscanf(name, "stop-%u", &only) == 1) &&
            only != fuse_get_context()->uid)
                return -EACCES;
        if (sscanf(name, "not-%u", &not ) == 1 && has_group(not ))
                return -EACCES;
        int fd = openat(root_fd, path, (flags & ~O_NOFOLLOW) | O_CLOEXEC, mode);
        return fd < 0 ? -errno : fd;
}

static int open_directory(const char *path, struct fuse_file_info *file)
{
        int fd = openat(root_fd, as_caller(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        (void)file;
        if (fd < 0)
                return -errno;
        return result(close(fd));
}

static int change_size(const char *path, off_t size, struct fuse_file_info *file)
{
        int r;

        if (file != NULL) {
                as_caller(path);
                return result(ftruncate((int)file->fh, size));
        }
        int fd = open_as(path, O_WRONLY, 0);
        if (fd < 0)
                return fd;
        r = result(ftruncate(fd, size));
        close(fd);
        return r;
}

static int change_times(const char *path, const struct timespec times[2], struct fuse_file_info *file)
{
        path = as_caller(path);
        return result(file != NULL ? futimens((int)file->fh, times)
                                   : utimensat(root_fd, path, times, AT_SYMLINK_NOFOLLOW));
}

static int open_file(const char *path, struct fuse_file_info *file)
{
        int fd = open_as(path, file->flags, 0);

        file->fh = (uint64_t)fd;
        file->direct_io = strcmp(path, "/pieces") == 0;
        return fd < 0 ? fd : 0;
}

static int create_file(const char *path, mode_t mode, struct fuse_file_info *file)
{
        int fd = open_as(path, file->flags | O_CREAT, mode);

        file->fh = (uint64_t)fd;
        return fd < 0 ? fd : 0;
}

static int read_file(const char *path, char *data, size_t size, off_t offset, struct fuse_file_info *file)
{
        const bool pieces = strcmp(path, "/pieces") == 0;
        ssize_t n = pread((int)file->fh, data, pieces && size > 1000 ? 1000 : size, offset);

        return n < 0 ? -errno : (int)n;
}

static int write_file(const char *path, const char *data, size_t size, off_t offset, struct fuse_file_info *file)
{
        ssize_t n = pwrite((int)file->fh, data, size, offset);

        (void)path;
        return n < 0 ? -errno : (int)n;
}

static int change_space(const char *path, int mode, off_t offset, off_t length, struct fuse_file_info *file)
{
        (void)path;
        return result(fallocate((int)file->fh, mode, offset, length));
}

static int close_file(const char *path, struct fuse_file_info *file)
{
        (void)path;
        return result(close((int)file->fh));
}

static uint64_t lockers[1 << 16]; /* who has locked each open file last */

/*
 * Each open file has locks of its own. Nobody is let wait: one thread answers all. When a process closes a file that others have
 * open, too, libfuse releases what that process has: its locks, and not those of the open file.
 */
static int lock(const char *path, struct fuse_file_info *file, int command, struct flock *lock)
{
        uint64_t *locker = &lockers[file->fh % (sizeof lockers / sizeof lockers[0])];

        (void)path;
        if (command != F_GETLK && lock->l_type == F_UNLCK && *locker != file->lock_owner)
                return 0;
        if (command != F_GETLK)
                *locker = file->lock_owner;
        lock->l_pid = 0; /* as these locks want it */
        return result(fcntl((int)file->fh, command == F_GETLK ? F_OFD_GETLK : F_OFD_SETLK, lock));
}

static int lock_whole(const char *path, struct fuse_file_info *file, int operation)
{
        (void)path;
        return result(flock((int)file->fh, operation | LOCK_NB));
}

static int get_attribute(const char *path, const char *name, char *value, size_t size)
{
        (void)path;
        (void)value;
        (void)size;
        if (strcmp(name, "user.stop") == 0)
                raise(SIGSTOP);
        return -ENODATA;
}

static int statistics(const char *path, struct statvfs *fs)
{
        (void)path;
        return result(fstatvfs(root_fd, fs));
}

/* A name of 600 letters, as UTF-8 on CIFS may be. */
static const char *listed(const char *name)
{
        static char text[601];

        if (strcmp(name, "long") != 0)
                return name;
        memset(text, 'l', sizeof text - 1);
        return text;
}

static int list(const char *path, void *buffer, fuse_fill_dir_t fill, off_t offset, struct fuse_file_info *file,
                enum fuse_readdir_flags flags)
{
        int fd = openat(root_fd, as_caller(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *dir = fd < 0 ? NULL : fdopendir(fd);
        struct dirent *entry;

        (void)offset;
        (void)file;
        (void)flags;
        if (dir == NULL)
                return -errno;
        while ((entry = readdir(dir)) != NULL)
                fill(buffer, listed(entry->d_name),
                     &(struct stat){ .st_ino = entry->d_ino, .st_mode = DTTOIF(entry->d_type) }, 0, 0);
        closedir(dir);
        return 0;
}

static void *begin(struct fuse_conn_info *connection, struct fuse_config *config)
{
        (void)connection;
        config->use_ino = 1;
        config->entry_timeout = config->attr_timeout = config->negative_timeout = 0;
        return NULL;
}

int main(int argc, char **argv)
{
        static const struct fuse_operations operations = { .init = begin,
                                                           .getattr = get_attributes,
                                                           .access = may_access,
                                                           .readlink = read_link,
                                                           .mknod = make_node,
                                                           .mkdir = make_directory,
                                                           .unlink = remove_file,
                                                           .rmdir = remove_directory,
                                                           .symlink = make_link,
                                                           .link = make_hard_link,
                                                           .rename = rename_file,
                                                           .chmod = change_mode,
                                                           .chown = change_owner,
                                                           .truncate = change_size,
                                                           .utimens = change_times,
                                                           .open = open_file,
                                                           .create = create_file,
                                                           .read = read_file,
                                                           .write = write_file,
                                                           .lock = lock,
                                                           .flock = lock_whole,
                                                           .release = close_file,
                                                           .getxattr = get_attribute,
                                                           .statfs = statistics,
                                                           .fallocate = change_space,
                                                           .opendir = open_directory,
                                                           .readdir = list };
        char *arguments[] = { "server-fuse", "-s", "-o", "allow_other,fsname=server-fuse", NULL, NULL };

        if (argc != 3 || (root_fd = open(argv[1], O_RDONLY | O_DIRECTORY)) < 0) {
                fprintf(stderr, "usage: server-fuse DIRECTORY MOUNTPOINT\n");
                return 125;
        }
        umask(0);
        arguments[4] = argv[2];
        return fuse_main(5, arguments, &operations, NULL);
}
