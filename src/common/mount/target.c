/* SPDX-License-Identifier: Apache-2.0 */
#include "mount/target.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/syscalls.h"
#include "base/text.h"
#include "mount/fs_usage.h"
#include "process/privileges.h"

#define LINKS_MAX 40 /* as the kernel's own limit */
#define RESOLVE_TARGET (RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS)

/* O_PATH on a path of the container, or negative errno. resolve: what RESOLVE_TARGET does not refuse already. */
static int open_inside(const struct container *container, const char *path, uint64_t flags, uint64_t resolve)
{
        const char *relative = path[1] == '\0' ? "." : path + 1;
        int fd = sys_openat2(container->root_fd, relative, O_PATH | flags, 0, RESOLVE_TARGET | resolve);

        return fd < 0 ? -errno : fd;
}

/* Where the container sees what fd is: the kernel's name for it, less the container's root if that is a chroot. */
static int container_path(const struct container *container, int fd, char *ret_path)
{
        char link[64];
        char root[PATH_MAX];
        char path[PATH_MAX];
        ssize_t n;
        size_t root_length;

        (void)snprintf(link, sizeof link, "/proc/self/fd/%d", container->root_fd);
        n = readlink(link, root, sizeof root);
        if (n <= 0 || n == (ssize_t)sizeof root)
                return -ENAMETOOLONG;
        root_length = n == 1 ? 0 : (size_t)n;
        (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        n = readlink(link, path, sizeof path);
        if (n <= 0 || n == (ssize_t)sizeof path)
                return -ENAMETOOLONG;
        path[n] = '\0';
        if ((size_t)n < root_length || memcmp(path, root, root_length) != 0)
                return -EXDEV;
        return text_path_normal(path[root_length] == '\0' ? "/" : path + root_length, ret_path);
}

void target_init(struct target *target)
{
        target->fd = -EBADF;
        target->base_fd = -EBADF;
        target->missing = 0;
        target->made = 0;
        target->root_uid = 0;
        target->root_gid = 0;
        target->directory = false;
        target->mount_root = false;
        target->mount = (struct mount_identity){};
        target->path[0] = '\0';
}

/*
 * What there is of a path, part of which is missing. Returns a descriptor, or negative errno with the error filled.
 * Gives:   ret_length, of that part; ret_missing, how many components there are behind it.
 */
static int open_existing(const struct container *container, const char *path, size_t *ret_length, unsigned *ret_missing,
                         struct error *error)
{
        char existing[PATH_MAX];
        int fd = -ENOENT;

        (void)text_copy(existing, sizeof existing, path);
        while (fd == -ENOENT && strcmp(existing, "/") != 0) {
                char *slash = strrchr(existing, '/');

                if (strcmp(slash, "/..") == 0)
                        return container_fail(container, ENOENT, OPERATION_OPENAT2, path,
                                              error); /* ".." cannot be created */
                slash[slash == existing ? 1 : 0] = '\0';
                ++*ret_missing;
                fd = open_inside(container, existing, 0, 0);
        }
        *ret_length = strlen(existing);
        return fd < 0 ? container_fail(container, -fd, OPERATION_OPENAT2, path, error) : fd;
}

/*
 * What of a path is missing may begin with a symbolic link whose end is missing, as /etc/resolv.conf in many images: that
 * end is made, beneath the container's root. 1: ret_path goes by way of the link; 0: it is no link; or negative errno.
 */
static int follow_dangling(const struct container *container, int fd, const char *rest, char *ret_path)
{
        const size_t length = strcspn(rest + 1, "/");
        char name[NAME_MAX + 1];
        char link[PATH_MAX];
        char base[PATH_MAX] = "";
        char whole[3 * PATH_MAX];
        ssize_t n;
        int r;

        (void)snprintf(name, sizeof name, "%.*s", (int)length, rest + 1);
        n = readlinkat(fd, name, link, sizeof link - 1);
        if (n < 0)
                return errno == ENOENT || errno == EINVAL ? 0 : -errno;
        link[n] = '\0';
        if (link[0] != '/' && (r = container_path(container, fd, base)) < 0)
                return r;
        (void)snprintf(whole, sizeof whole, "%s/%s%s", base, link, rest + 1 + length);
        r = text_path_normal(whole, ret_path);
        return r < 0 ? r : 1;
}

/* 1: look at ret_next. */
static int look(const struct container *container, const char *path, struct target *ret_target, char *ret_next,
                struct error *error)
{
        struct target *target = ret_target; /* filled in place: it is large */
        cleanup_close int fd = -EBADF;
        struct mount_seen seen;
        bool straight; /* no symbolic link on the way: the container sees it where it was asked for */
        size_t length = strlen(path);
        int r;

        target_init(target);
        fd = open_inside(container, path, 0, RESOLVE_NO_SYMLINKS);
        straight = fd >= 0 && strstr(path, "/..") == NULL;
        if (fd == -ELOOP)
                fd = open_inside(container, path, 0, 0);
        if (fd == -ENOENT && strcmp(path, "/") != 0) {
                if ((fd = open_existing(container, path, &length, &target->missing, error)) < 0)
                        return fd;
        } else if (fd < 0)
                return container_fail(container, -fd, OPERATION_OPENAT2, path, error);
        if (length == 1)
                length = 0; /* below the root directory the missing part begins with the slash */

        if (file_is_of_kernel(fd)) { /* a mount over a part of one would hide it from the container's root */
                (void)fail_because(error, EPERM, OPERATION_FIND_TARGET, path,
                                   "the target is in a kernel filesystem (proc, sysfs, cgroup, ...)");
                return error_where(error, container->name);
        }
        r = mount_see(fd, "", &seen);
        if (r < 0)
                return container_fail(container, -r, "statx", path, error);
        if (target->missing > 0 && !seen.directory)
                return container_fail(container, ENOTDIR, OPERATION_OPENAT2, path, error);
        if (target->missing > 0 && (r = follow_dangling(container, fd, path + length, ret_next)) != 0)
                return r < 0 ? container_fail(container, -r, OPERATION_OPENAT2, path, error) : r;

        if (straight || container_path(container, fd, target->path) < 0 ||
            strlen(target->path) + strlen(path + length) >= sizeof target->path)
                (void)text_copy(target->path, sizeof target->path, path); /* or too long to be told otherwise */
        else if (target->missing > 0) {
                size_t known = strcmp(target->path, "/") == 0 ? 0 : strlen(target->path);

                (void)text_copy(target->path + known, sizeof target->path - known, path + length);
        }
        target->directory = seen.directory;
        target->mount_root = seen.root && target->missing == 0;
        target->mount = seen.identity;
        *(target->missing > 0 ? &target->base_fd : &target->fd) = fd_take(&fd);
        return 0;
}

int target_look(const struct container *container, const char *path, struct target *ret_target, struct error *error)
{
        char here[PATH_MAX];
        char next[PATH_MAX];
        int r;

        (void)text_copy(here, sizeof here, path);
        for (unsigned links = 0; (r = look(container, here, ret_target, next, error)) > 0; links++) {
                if (links == LINKS_MAX)
                        return container_fail(container, ELOOP, OPERATION_OPENAT2, path, error);
                (void)text_copy(here, sizeof here, next);
        }
        return r;
}

int target_see(const struct container *container, const char *path, struct mount_seen *ret_seen,
               const struct mount_identity *ours, struct statfs *ret_fs, struct error *error)
{
        cleanup_close int fd = open_inside(container, path, 0, 0);
        int r = fd < 0 ? fd : mount_see(fd, "", ret_seen);

        if (r < 0)
                return container_fail(container, -r, OPERATION_OPENAT2, path, error);
        if (ret_fs != NULL && mount_seen_is(ret_seen, ours) && (r = fs_usage_ask(fd, ret_fs)) < 0)
                return container_fail(container, -r, "fstatfs", path, error);
        return 0;
}

/* Creates and opens one component without following links. An existing directory will do. */
static int make_directory(int dirfd, const char *name, bool *ret_made)
{
        int fd;

        *ret_made = mkdirat(dirfd, name, 0755) == 0;
        if (!*ret_made && errno != EEXIST)
                return -errno;
        fd = sys_openat2(dirfd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
        return fd < 0 ? -errno : fd;
}

static int make_file(int dirfd, const char *name, bool *ret_made)
{
        int fd;

        *ret_made = mknodat(dirfd, name, S_IFREG | 0644, 0) == 0;
        if (!*ret_made)
                return -errno;
        fd = sys_openat2(dirfd, name, O_PATH | O_NOFOLLOW, 0, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
        return fd < 0 ? -errno : fd;
}

/* The start of a path's last count components, behind the slash. */
static const char *last_components(const char *path, unsigned count)
{
        const char *start = path + strlen(path);

        for (unsigned i = 0; i < count; i++)
                do
                        start--;
                while (start > path && *start != '/');
        return start + 1;
}

/* One more component beneath dirfd, by the rights that the container's root has there. */
static int make_component(const struct container *container, int dirfd, const char *name, bool directory,
                          bool *ret_made, struct error *error)
{
        struct stat st;
        int r;

        *ret_made = false;
        /* we have the node's capabilities: check that the container's root could do this */
        if (fstat(dirfd, &st) < 0)
                return container_fail(container, errno, "fstat", name, error);
        r = container_may_change(container, st.st_uid, st.st_gid, error);
        if (r < 0)
                return r;
        r = directory ? make_directory(dirfd, name, ret_made) : make_file(dirfd, name, ret_made);
        return r < 0 ? container_fail(container, -r, "mkdir", name, error) : r;
}

static int make_components(const struct container *container, struct target *target, bool directory,
                           struct error *error)
{
        const char *rest = last_components(target->path, target->missing);
        cleanup_close int fd = fd_take(&target->base_fd);

        for (unsigned left = target->missing; left > 0; left--) {
                char name[NAME_MAX + 1];
                size_t length = strcspn(rest, "/");
                bool made;
                int next;

                (void)memcpy(name, rest, length); /* no component is longer: text_path_normal() */
                name[length] = '\0';
                rest += length + (left > 1 ? 1 : 0);
                next = make_component(container, fd, name, left > 1 || directory, &made, error);
                if (made || target->made > 0)
                        target->made++;
                else if (next >= 0)
                        target->missing--; /* another process created it just now, and owns it */
                if (next < 0)
                        return next;
                fd_close(&fd);
                fd = next;
        }
        target->fd = fd_take(&fd);
        return 0;
}

int target_make(const struct container *container, struct target *target, bool directory, struct error *error)
{
        struct mount_seen seen;
        uid_t uid;
        gid_t gid;
        int r;

        if (target->missing == 0)
                return 0;
        if ((r = container_root_ids(container, &uid, &gid, error)) < 0 ||
            (r = privileges_file_owner(uid, gid, error)) < 0)
                return r;
        target->root_uid = uid;
        target->root_gid = gid;
        /* as the container's root, with the node's capabilities, beneath descriptors only */
        r = make_components(container, target, directory, error);
        (void)privileges_file_owner(0, 0, &(struct error){}); /* back: cannot fail for our own ids */
        if (r < 0)
                return r;

        r = mount_see(target->fd, "", &seen);
        if (r < 0)
                return container_fail(container, -r, "statx", target->path, error);
        target->directory = seen.directory;
        target->mount_root = seen.root;
        target->mount = seen.identity;
        return 0;
}

int target_open_parent(const struct container *container, const char *path, const char **ret_name, struct error *error)
{
        char parent[PATH_MAX];
        const char *name = last_components(path, 1);
        int fd;

        (void)text_copy(parent, sizeof parent, path);
        parent[name - path > 1 ? name - path - 1 : 1] = '\0';
        fd = open_inside(container, parent, O_DIRECTORY, RESOLVE_NO_SYMLINKS);
        if (fd < 0)
                return container_fail(container, -fd, OPERATION_OPENAT2, parent, error);
        *ret_name = name;
        return fd;
}

/* Errors of removing a path that is in use, or cannot be removed. */
static bool is_in_use(int errnum)
{
        return errnum == ENOTEMPTY || errnum == EEXIST || errnum == EBUSY || errnum == ENOTDIR || errnum == EISDIR ||
               errnum == ELOOP || errnum == EROFS || errnum == EPERM || errnum == EACCES;
}

/*
 * Removes a path if it is an empty directory or file of the container's root, and no mount point: 0 gone, 1 in use, or
 * negative errno. Which ids are the container's an ended process does not tell; those of its root are.
 */
static int remove_unused(const struct container *container, const char *path, uid_t uid, gid_t gid, struct error *error)
{
        const char *name = last_components(path, 1);
        cleanup_close int dirfd = target_open_parent(container, path, &name, error);
        struct mount_seen seen;
        struct stat parent;
        struct stat st;
        int r;

        if (dirfd < 0)
                return dirfd == -ENOENT ? 0 : is_in_use(-dirfd) ? 1 : dirfd;
        if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0)
                return errno == ENOENT ? 0 : container_fail(container, errno, "stat", path, error);
        /*
         * Since Linux 3.18 the kernel removes a mount point of another mount namespace, and unmounts it: so look first.
         */
        r = mount_see(dirfd, name, &seen);
        if (r < 0)
                return container_fail(container, -r, "statx", path, error);
        if (seen.root || !(S_ISDIR(st.st_mode) || (S_ISREG(st.st_mode) && st.st_size == 0)))
                return 1;
        if (fstat(dirfd, &parent) < 0)
                return container_fail(container, errno, "fstat", path, error);
        r = container_may_change(container, parent.st_uid, parent.st_gid, error);
        if (r == -ESRCH)
                r = parent.st_uid == uid && parent.st_gid == gid ? 0 : -EACCES;
        if (r < 0 || st.st_uid != uid)
                return r == 0 || r == -EACCES ? 1 : r;
        if (unlinkat(dirfd, name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0) == 0 || errno == ENOENT)
                return 0;
        return is_in_use(errno) ? 1 : container_fail(container, errno, "unlinkat", path, error);
}

int target_unmake(const struct container *container, const char *path, unsigned skip, unsigned count,
                  const struct target *made, unsigned *ret_left, struct error *error)
{
        char rest[PATH_MAX];
        uid_t uid;
        gid_t gid;
        int r;

        *ret_left = count;
        if (count == 0)
                return 0;
        r = container_root_ids(container, &uid, &gid, error);
        if (r == -EINVAL)
                return 0; /* the process is in a user namespace without that id: its directories stay */
        if (r == -ESRCH && made == NULL)
                return 0; /* other processes of the container may go on, and have replaced the path */
        if (r == -ESRCH) {
                uid = made->root_uid;
                gid = made->root_gid;
        } else if (r < 0)
                return r;
        /* as the container's root, for sticky directories; the node's root can remove most, too */
        (void)privileges_file_owner(uid, gid, error);
        (void)text_copy(rest, sizeof rest, path);
        if (skip > 0)
                rest[last_components(rest, skip) - rest - 1] = '\0';
        while (*ret_left > 0 && (r = remove_unused(container, rest, uid, gid, error)) == 0) {
                *strrchr(rest, '/') = '\0';
                (*ret_left)--;
        }
        (void)privileges_file_owner(0, 0, &(struct error){}); /* back: cannot fail for our own ids */
        return r < 0 ? r : 0;
}

void target_release(struct target *target)
{
        fd_close(&target->fd);
        fd_close(&target->base_fd);
}
