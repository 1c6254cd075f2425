/* SPDX-License-Identifier: Apache-2.0 */
#include "operations.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "caller.h"
#include "locks.h"
#include "nodes.h"
#include "session.h"

#define CACHED_SECONDS 1.0 /* how long the kernel believes names and attributes */
#define READ_MAX ((size_t)1024 * 1024)
#define LIST_MAX ((size_t)64 * 1024)
#define ENTRY_MAX 280 /* of getdents64(2), with the longest name */
#define XATTR_MAX ((size_t)64 * 1024)
#define ERRNO_END 512     /* from here on they are the kernel's own: include/linux/errno.h */
#define NOT_SUPPORTED 524 /* ENOTSUPP there */
#define BAD_HANDLE 521

/* Linux 6.9 */
struct backing_map {
        int32_t fd;
        uint32_t flags;
        uint64_t padding;
};
#define BACKING_OPEN _IOW(229, 1, struct backing_map)
#define BACKING_CLOSE _IOW(229, 2, uint32_t)

/*
 * ATTEMPT(request, call) - the result of a system call made as the caller; made once more with the caller's
 * supplementary groups if it was refused without them. -1 and errno.
 */
#define ATTEMPT(request, call)                                                                                         \
        ({                                                                                                             \
                __typeof__(call) attempt_result = (call);                                                              \
                if (attempt_result < 0 && (errno == EACCES || errno == EPERM) &&                                       \
                    caller_add_groups(fuse_req_ctx(request)->pid))                                                     \
                        attempt_result = (call);                                                                       \
                attempt_result;                                                                                        \
        })

/* A server's errors that are no errno of user space's (524 and its like, from NFS) the kernel would not take as an
 * answer. */
static void reply_error(fuse_req_t request, int r)
{
        if (r == -NOT_SUPPORTED)
                r = -EOPNOTSUPP;
        else if (r == -BAD_HANDLE)
                r = -ESTALE;
        else if (r <= -ERRNO_END)
                r = -EIO;
        (void)fuse_reply_err(request, -r); /* whoever asked may be gone */
}

/* What is at hand is this thread's to read into, aligned for direct I/O. */
static char *scratch(void)
{
        static __thread char *buffer;

        if (buffer == NULL)
                buffer = aligned_alloc(4096, READ_MAX);
        return buffer;
}

static int act_as_caller(fuse_req_t request)
{
        const struct fuse_ctx *context = fuse_req_ctx(request);

        return caller_become(context->uid, context->gid);
}

/* The node of a request, its descriptor, and the caller's ids; negative errno where there is none of them. */
static int begin(fuse_req_t request, fuse_ino_t number, struct node **ret_node, struct node_fd *ret_fd)
{
        struct node *node = nodes_get(number);
        int r;

        *ret_node = node;
        if (node == NULL)
                return -ESTALE;
        if ((r = act_as_caller(request)) < 0)
                return r;
        *ret_fd = nodes_open(node);
        if (ret_fd->fd >= 0)
                session_changes();
        return ret_fd->fd < 0 ? ret_fd->fd : 0;
}
#define NO_FD                                                                                                          \
        {                                                                                                              \
                .fd = -EBADF                                                                                           \
        }

/*
 * Who is not of a file's group loses the setgid bit without a word, but for root, who in the container has CAP_FSETID:
 * here nobody has, or what is written as root would keep such bits.
 */
static void keep_setgid(fuse_req_t request, int fd)
{
        struct stat st;

        if (fuse_req_ctx(request)->uid != 0)
                (void)caller_add_groups(fuse_req_ctx(request)->pid);
        else if (fstatat(fd, "", &st, AT_EMPTY_PATH) == 0 && caller_knows(st.st_uid, st.st_gid))
                caller_join(st.st_gid);
}

struct link_path {
        char text[32];
};

/* A path to what an O_PATH descriptor is on, for the calls that take no such descriptor. */
static struct link_path path_of(int fd)
{
        struct link_path path;

        (void)snprintf(path.text, sizeof path.text, "/proc/self/fd/%d", fd);
        return path;
}

static struct fuse_entry_param entry_of(const struct node *node, const struct stat *st)
{
        return (struct fuse_entry_param){ .ino = nodes_number(node),
                                          .generation = node->generation,
                                          .attr = *st,
                                          .attr_timeout = CACHED_SECONDS,
                                          .entry_timeout = CACHED_SECONDS };
}

/* What a name is; or r, when what was to be done before failed. */
static void reply_entry(fuse_req_t request, int r, int directory_fd, const char *name)
{
        struct node *node = NULL;
        struct stat st;

        if (r == 0) {
                r = nodes_look_up(directory_fd, name, &node, &st);
                if ((r == -EACCES || r == -EPERM) && caller_add_groups(fuse_req_ctx(request)->pid))
                        r = nodes_look_up(directory_fd, name, &node, &st);
        }
        if (node != NULL) {
                struct fuse_entry_param entry = entry_of(node, &st);

                if (fuse_reply_entry(request, &entry) < 0)
                        nodes_forget(node, 1); /* nobody heard of it */
        } else
                reply_error(request, r);
}

/* ---- names */

static void do_lookup(fuse_req_t request, fuse_ino_t parent, const char *name)
{
        cleanup_node_fd struct node_fd fd = NO_FD;
        struct node *node;
        int r = begin(request, parent, &node, &fd);

        if (r == 0 && (strcmp(name, "..") == 0 || strcmp(name, ".") == 0))
                r = -ESTALE; /* asked only by who exports this in turn */
        reply_entry(request, r, fd.fd, name);
}

static void forget(fuse_ino_t number, uint64_t count)
{
        struct node *node = nodes_get(number);

        if (node == NULL)
                return;
        if (node->lookups <= count)
                locks_drop_file(node, -1);
        nodes_forget(node, count);
}

static void do_forget(fuse_req_t request, fuse_ino_t number, uint64_t count)
{
        forget(number, count);
        fuse_reply_none(request);
}

static void do_forget_multi(fuse_req_t request, size_t count, struct fuse_forget_data *forgets)
{
        for (size_t i = 0; i < count; i++)
                forget(forgets[i].ino, forgets[i].nlookup);
        fuse_reply_none(request);
}

/* What a daemon before us had done already, if it did: the server's own cache of answers works alike. */
static bool done_before(int errnum, int expected)
{
        return session_may_have_changed() && errnum == expected;
}

static void make_name(fuse_req_t request, fuse_ino_t parent, const char *name, mode_t mode)
{
        cleanup_node_fd struct node_fd fd = NO_FD;
        struct node *node;
        int r = begin(request, parent, &node, &fd);

        if (r == 0 && (S_ISCHR(mode) || S_ISBLK(mode)))
                r = -EPERM;
        if (r == 0) {
                caller_umask(fuse_req_ctx(request)->umask);
                if ((mode & S_ISGID) != 0)
                        keep_setgid(request, fd.fd);
                if (ATTEMPT(request, S_ISDIR(mode) ? mkdirat(fd.fd, name, mode & ~(mode_t)S_IFMT)
                                                   : mknodat(fd.fd, name, mode, 0)) < 0 &&
                    !done_before(errno, EEXIST))
                        r = -errno;
        }
        reply_entry(request, r, fd.fd, name);
}

static void do_mknod(fuse_req_t request, fuse_ino_t parent, const char *name, mode_t mode, dev_t device)
{
        (void)device;
        make_name(request, parent, name, mode);
}

static void do_mkdir(fuse_req_t request, fuse_ino_t parent, const char *name, mode_t mode)
{
        make_name(request, parent, name, (mode & ~(mode_t)S_IFMT) | S_IFDIR);
}

static void do_symlink(fuse_req_t request, const char *target, fuse_ino_t parent, const char *name)
{
        cleanup_node_fd struct node_fd fd = NO_FD;
        struct node *node;
        int r = begin(request, parent, &node, &fd);

        if (r == 0 && ATTEMPT(request, symlinkat(target, fd.fd, name)) < 0 && !done_before(errno, EEXIST))
                r = -errno;
        reply_entry(request, r, fd.fd, name);
}

static void do_link(fuse_req_t request, fuse_ino_t number, fuse_ino_t parent, const char *name)
{
        cleanup_node_fd struct node_fd directory = NO_FD;
        cleanup_node_fd struct node_fd fd = NO_FD;
        struct node *node;
        int r = begin(request, number, &node, &fd);

        if (r == 0)
                r = begin(request, parent, &node, &directory);
        /* by its path in /proc: AT_EMPTY_PATH is for who may search everything (before Linux 6.10) */
        if (r == 0 &&
            ATTEMPT(request, linkat(AT_FDCWD, path_of(fd.fd).text, directory.fd, name, AT_SYMLINK_FOLLOW)) < 0 &&
            !done_before(errno, EEXIST))
                r = -errno;
        reply_entry(request, r, directory.fd, name);
}

static void remove_name(fuse_req_t request, fuse_ino_t parent, const char *name, int flags)
{
        cleanup_node_fd struct node_fd fd = NO_FD;
        struct node *node;
        int r = begin(request, parent, &node, &fd);

        if (r == 0 && ATTEMPT(request, unlinkat(fd.fd, name, flags)) < 0 && !done_before(errno, ENOENT))
                r = -errno;
        reply_error(request, r);
}

static void do_unlink(fuse_req_t request, fuse_ino_t parent, const char *name)
{
        remove_name(request, parent, name, 0);
}

static void do_rmdir(fuse_req_t request, fuse_ino_t parent, const char *name)
{
        remove_name(request, parent, name, AT_REMOVEDIR);
}

static void do_rename(fuse_req_t request, fuse_ino_t parent, const char *name, fuse_ino_t new_parent,
                      const char *new_name, unsigned flags)
{
        cleanup_node_fd struct node_fd from = NO_FD;
        cleanup_node_fd struct node_fd to = NO_FD;
        struct node *node;
        int r = begin(request, parent, &node, &from);

        if (r == 0)
                r = begin(request, new_parent, &node, &to);
        if (r == 0 && (flags & RENAME_WHITEOUT) != 0)
                r = -EINVAL; /* would make a device node */
        if (r == 0 && ATTEMPT(request, renameat2(from.fd, name, to.fd, new_name, flags)) < 0 &&
            !done_before(errno, ENOENT))
                r = -errno;
        reply_error(request, r);
}

static void do_readlink(fuse_req_t request, fuse_ino_t number)
{
        cleanup_node_fd struct node_fd fd = NO_FD;
        char target[PATH_MAX + 1];
        struct node *node;
        ssize_t n = -1;
        int r = begin(request, number, &node, &fd);

        if (r == 0 && (n = ATTEMPT(request, readlinkat(fd.fd, "", target, sizeof target - 1))) < 0)
                r = -errno;
        if (r < 0) {
                reply_error(request, r);
                return;
        }
        target[n] = '\0';
        (void)fuse_reply_readlink(request, target);
}

/* ---- attributes */

/* Of what a descriptor is on; or r, when what was to be done before failed. */
static void reply_attributes(fuse_req_t request, int r, int fd)
{
        struct stat st;

        if (r == 0 && fstatat(fd, "", &st, AT_EMPTY_PATH) < 0)
                r = -errno;
        if (r < 0)
                reply_error(request, r);
        else
                (void)fuse_reply_attr(request, &st, CACHED_SECONDS);
}

static void do_getattr(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *file)
{
        cleanup_node_fd struct node_fd fd = NO_FD;
        struct node *node;
        int r = begin(request, number, &node, &fd);

        (void)file;
        reply_attributes(request, r, fd.fd);
}

static int set_times(int fd, const struct stat *st, int what)
{
        struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_nsec = UTIME_OMIT } };

        if ((what & FUSE_SET_ATTR_ATIME_NOW) != 0)
                times[0].tv_nsec = UTIME_NOW;
        else if ((what & FUSE_SET_ATTR_ATIME) != 0)
                times[0] = st->st_atim;
        if ((what & FUSE_SET_ATTR_MTIME_NOW) != 0)
                times[1].tv_nsec = UTIME_NOW;
        else if ((what & FUSE_SET_ATTR_MTIME) != 0)
                times[1] = st->st_mtim;
        return utimensat(fd, "", times, AT_EMPTY_PATH);
}

static int set_attributes(fuse_req_t request, int fd, const struct stat *st, int what,
                          const struct fuse_file_info *file)
{
        struct link_path path = path_of(fd);

        if ((what & FUSE_SET_ATTR_MODE) != 0) {
                if ((st->st_mode & S_ISGID) != 0)
                        keep_setgid(request, fd);
                if (ATTEMPT(request, fchmodat(AT_FDCWD, path.text, st->st_mode & 07777, 0)) < 0)
                        return -errno;
        }
        if ((what & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)) != 0) {
                uid_t uid = (what & FUSE_SET_ATTR_UID) != 0 ? st->st_uid : (uid_t)-1;
                gid_t gid = (what & FUSE_SET_ATTR_GID) != 0 ? st->st_gid : (gid_t)-1;
                struct stat now;

                /* of a file that is nobody's in there the kernel would let the container's root make its own */
                if (fstatat(fd, "", &now, AT_EMPTY_PATH) < 0)
                        return -errno;
                if (!caller_knows(now.st_uid, now.st_gid))
                        return -EPERM;
                if (ATTEMPT(request, fchownat(fd, "", uid, gid, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW)) < 0)
                        return -errno;
        }
        if ((what & FUSE_SET_ATTR_SIZE) != 0) {
                int r = file != NULL ? ftruncate((int)file->fh, st->st_size)
                                     : ATTEMPT(request, truncate(path.text, st->st_size));

                if (r < 0)
                        return -errno;
        }
        if ((what & (FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_ATIME_NOW | FUSE_SET_ATTR_MTIME_NOW)) !=
                    0 &&
            ATTEMPT(request, set_times(fd, st, what)) < 0)
                return -errno;
        return 0;
}

static void do_setattr(fuse_req_t request, fuse_ino_t number, struct stat *st, int what, struct fuse_file_info *file)
{
        cleanup_node_fd struct node_fd fd = NO_FD;
        struct node *node;
        int r = begin(request, number, &node, &fd);

        if (r == 0)
                r = set_attributes(request, fd.fd, st, what, file);
        reply_attributes(request, r, fd.fd);
}

static void do_statfs(fuse_req_t request, fuse_ino_t number)
{
        cleanup_node_fd struct node_fd fd = NO_FD;
        struct statvfs answer;
        struct node *node;
        int r = begin(request, number, &node, &fd);

        if (r == 0 && fstatvfs(fd.fd, &answer) < 0)
                r = -errno;
        if (r < 0)
                reply_error(request, r);
        else
                (void)fuse_reply_statfs(request, &answer);
}

/* ---- extended attributes: a user's own, and access control lists, whose ids are the container's in both worlds */

static bool passes(const char *name)
{
        static const char *const exact[] = { "system.posix_acl_access", "system.posix_acl_default", "system.nfs4_acl",
                                             "system.nfs4_dacl", "system.nfs4_sacl" };

        for (size_t i = 0; i < sizeof exact / sizeof exact[0]; i++)
                if (strcmp(name, exact[i]) == 0)
                        return true;
        return strncmp(name, "user.", 5) == 0;
}

static int begin_xattr(fuse_req_t request, fuse_ino_t number, const char *name, bool changes, int refused,
                       struct node_fd *ret_fd)
{
        struct node *node;
        struct stat st;
        int r;

        if (name != NULL && !passes(name))
                return refused;
        r = begin(request, number, &node, ret_fd);
        if (r < 0)
                return r;
        if (changes && name != NULL &&
            strncmp(name, "system.", 7) == 0) { /* who may, the container's kernel does not ask for all of them */
                if (fstatat(ret_fd->fd, "", &st, AT_EMPTY_PATH) < 0)
                        return -errno;
                if (!caller_knows(st.st_uid, st.st_gid))
                        return -EPERM;
        }
        return S_ISLNK(node->mode) ? refused : 0;
}

static void do_setxattr(fuse_req_t request, fuse_ino_t number, const char *name, const char *value, size_t size,
                        int flags)
{
        cleanup_node_fd struct node_fd fd = NO_FD;
        int r = begin_xattr(request, number, name, /* changes= */ true, -EOPNOTSUPP, &fd);

        if (r == 0 && ATTEMPT(request, setxattr(path_of(fd.fd).text, name, value, size, flags)) < 0)
                r = -errno;
        reply_error(request, r);
}

static void reply_xattr(fuse_req_t request, ssize_t n, size_t size, const char *value)
{
        if (n < 0)
                reply_error(request, (int)n);
        else if (size == 0)
                (void)fuse_reply_xattr(request, (size_t)n);
        else if ((size_t)n > size)
                reply_error(request, -ERANGE);
        else
                (void)fuse_reply_buf(request, value, (size_t)n);
}

static void do_getxattr(fuse_req_t request, fuse_ino_t number, const char *name, size_t size)
{
        cleanup_node_fd struct node_fd fd = NO_FD;
        ssize_t n = begin_xattr(request, number, name, /* changes= */ false, -ENODATA, &fd);

        if (n == 0 && scratch() == NULL)
                n = -ENOMEM;
        if (n == 0) {
                n = ATTEMPT(request,
                            getxattr(path_of(fd.fd).text, name, scratch(), size < XATTR_MAX ? size : XATTR_MAX));
                n = n >= 0 ? n : errno == EOPNOTSUPP ? -ENODATA : -errno;
        }
        reply_xattr(request, n, size, scratch());
}

static void do_listxattr(fuse_req_t request, fuse_ino_t number, size_t size)
{
        cleanup_node_fd struct node_fd fd = NO_FD;
        ssize_t n = begin_xattr(request, number, NULL, /* changes= */ false, 0, &fd);
        size_t kept = 0;
        char *names = scratch();

        if (n == 0 && names == NULL)
                n = -ENOMEM;
        if (n == 0 && fd.fd >= 0) {
                n = ATTEMPT(request, listxattr(path_of(fd.fd).text, names, XATTR_MAX));
                n = n < 0 ? -errno : n;
        }
        for (ssize_t i = 0; i < n; i += (ssize_t)strlen(names + i) + 1)
                if (passes(names + i)) {
                        size_t length = strlen(names + i) + 1;

                        (void)memmove(names + kept, names + i, length);
                        if (kept != (size_t)i)
                                names[i + (ssize_t)length - 1] = '\0';
                        kept += length;
                }
        reply_xattr(request, n < 0 ? n : (ssize_t)kept, size, names);
}

static void do_removexattr(fuse_req_t request, fuse_ino_t number, const char *name)
{
        cleanup_node_fd struct node_fd fd = NO_FD;
        int r = begin_xattr(request, number, name, /* changes= */ true, -EOPNOTSUPP, &fd);

        if (r == 0 && ATTEMPT(request, removexattr(path_of(fd.fd).text, name)) < 0 && !done_before(errno, ENODATA))
                r = -errno;
        reply_error(request, r);
}

/* ---- open files */

static pthread_mutex_t backing_mutex = PTHREAD_MUTEX_INITIALIZER;

void operations_begin(void)
{
        backing_mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

/*
 * Let the kernel read and write the file itself, where it can: every open file of a node that is passed through at one
 * time is so with the same registration. 0: not this one.
 */
static int pass_through(struct node *node, int fd)
{
        int backing = 0;

        if (!shared->passthrough)
                return 0;
        (void)pthread_mutex_lock(&backing_mutex);
        if (node->opens == 0) {
                struct backing_map map = { .fd = fd };

                /* the kernel writes as whoever registers it: without CAP_FSETID, so that a write takes the setuid bit
                 * away */
                node->backing = ioctl(FD_FUSE, BACKING_OPEN, &map);
                if (node->backing < 0) /* on a filesystem that is itself made of others, say: then through us */
                        node->backing = 0;
        }
        node->opens++;
        backing = node->backing;
        (void)pthread_mutex_unlock(&backing_mutex);
        return backing;
}

static void end_pass_through(struct node *node)
{
        (void)pthread_mutex_lock(&backing_mutex);
        if (node->opens > 0 && --node->opens == 0 && node->backing > 0) {
                (void)ioctl(FD_FUSE, BACKING_CLOSE, &node->backing); /* it was open */
                node->backing = 0;
        }
        (void)pthread_mutex_unlock(&backing_mutex);
}

/* What the kernel asks of an open file here is another thing than what it asks of the one behind it. */
static int open_flags(int flags)
{
        flags &= ~(O_NOFOLLOW | O_CREAT | O_EXCL | O_NOCTTY);
        if (!shared->network)
                flags &= ~O_DIRECT; /* which wants buffers aligned; a network filesystem does not */
        /* that is said with each write: it can be taken away from an open file */
        return (flags & ~O_APPEND) | O_CLOEXEC;
}

static int64_t nanoseconds(const struct timespec *time)
{
        return (int64_t)time->tv_sec * 1000000000 + time->tv_nsec;
}

/* Whether what the kernel has of its content is what it is, as it was when it was opened last (close-to-open). */
static bool is_as_seen(struct node *node, const struct stat *st)
{
        int64_t mtime_ns = nanoseconds(&st->st_mtim);
        int64_t ctime_ns = nanoseconds(&st->st_ctim);
        bool same =
                node->seen_size == st->st_size && node->seen_mtime_ns == mtime_ns && node->seen_ctime_ns == ctime_ns;

        node->seen_size = st->st_size;
        node->seen_mtime_ns = mtime_ns;
        node->seen_ctime_ns = ctime_ns;
        return same;
}

static void adopt_file(struct node *node, int fd, struct fuse_file_info *file)
{
        int backing = pass_through(node, fd);
        struct stat st;

        file->fh = (uint64_t)fd;
        descriptor_use(fd, USE_OPEN);
        /* of what was only read there is nothing to write back; its locks end with it */
        file->noflush = !shared->network && (file->flags & O_ACCMODE) == O_RDONLY;
        /* what the kernel passes through it does not cache, and does not want to hear of caching (EIO) */
        file->keep_cache = backing == 0 && fstat(fd, &st) == 0 && is_as_seen(node, &st);
        session_pass_through(backing);
}

static void drop_file(struct node *node, int fd)
{
        session_pass_through(0);
        end_pass_through(node);
        descriptor_end(fd);
}

static void do_open(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *file)
{
        cleanup_node_fd struct node_fd fd = NO_FD;
        struct node *node;
        int opened = -1;
        int r = begin(request, number, &node, &fd);

        if (r == 0)
                r = descriptor_room();
        if (r == 0 && !S_ISREG(node->mode))
                r = -EOPNOTSUPP; /* what it is to open another thing is the kernel's own affair */
        if (r == 0 && (opened = ATTEMPT(request, open(path_of(fd.fd).text, open_flags(file->flags)))) < 0)
                r = -errno;
        if (r < 0) {
                reply_error(request, r);
                return;
        }
        adopt_file(node, opened, file);
        if (fuse_reply_open(request, file) < 0)
                drop_file(node, opened);
}

/* O_NONBLOCK: should it turn out to be a pipe, nobody waits for its other end. */
static int create(int directory_fd, const char *name, int flags, mode_t mode)
{
        return openat(directory_fd, name, open_flags(flags) | (flags & O_EXCL) | O_CREAT | O_NOFOLLOW | O_NONBLOCK,
                      mode);
}

static void do_create(fuse_req_t request, fuse_ino_t parent, const char *name, mode_t mode, struct fuse_file_info *file)
{
        cleanup_node_fd struct node_fd fd = NO_FD;
        struct fuse_entry_param entry;
        struct node *node;
        struct stat now;
        struct stat st;
        int opened = -1;
        int r = begin(request, parent, &node, &fd);

        if (r == 0)
                r = descriptor_room();
        if (r == 0) {
                int flags = session_may_have_changed() ? file->flags & ~O_EXCL : file->flags;

                caller_umask(fuse_req_ctx(request)->umask);
                if ((mode & S_ISGID) != 0)
                        keep_setgid(request, fd.fd);
                opened = ATTEMPT(request, create(fd.fd, name, flags, mode));
                if (opened < 0)
                        r = -errno;
        }
        if (r == 0)
                r = nodes_open_name(fd.fd, name, &node, &st);
        if (r == 0 && (fstat(opened, &now) < 0 || now.st_ino != st.st_ino || !S_ISREG(st.st_mode))) {
                nodes_forget(node, 1);
                r = S_ISREG(st.st_mode) ? -ESTALE : -EEXIST; /* somebody renames; or it is no file */
        }
        if (r < 0) {
                if (opened >= 0)
                        (void)close(opened); /* nothing was written to it */
                reply_error(request, r);
                return;
        }
        adopt_file(node, opened, file);
        entry = entry_of(node, &st);
        if (fuse_reply_create(request, &entry, file) < 0) {
                drop_file(node, opened);
                nodes_forget(node, 1);
        }
}

static void do_read(fuse_req_t request, fuse_ino_t number, size_t size, off_t offset, struct fuse_file_info *file)
{
        char *buffer = scratch();
        ssize_t n;

        (void)number;
        if (buffer == NULL) {
                reply_error(request, -ENOMEM);
                return;
        }
        n = pread((int)file->fh, buffer, size < READ_MAX ? size : READ_MAX, offset);
        if (n < 0)
                reply_error(request, -errno);
        else
                (void)fuse_reply_buf(request, buffer, (size_t)n);
}

static void do_write(fuse_req_t request, fuse_ino_t number, const char *data, size_t size, off_t offset,
                     struct fuse_file_info *file)
{
        ssize_t n;
        int r = 0;

        (void)number;
        /* whose write takes the setuid bit away is the caller's; of what is written back later nobody is the caller */
        if (!file->writepage)
                r = act_as_caller(request);
        if (r < 0) {
                reply_error(request, r);
                return;
        }
        /* its end may be farther than the container's kernel knows: others append, too */
        if ((file->flags & O_APPEND) != 0) {
                const struct iovec part = { .iov_base = (void *)data, .iov_len = size };

                n = pwritev2((int)file->fh, &part, 1, offset, RWF_APPEND);
        } else
                n = pwrite((int)file->fh, data, size, offset);
        if (n < 0)
                reply_error(request, -errno);
        else
                (void)fuse_reply_write(request, (size_t)n);
}

/* A file was closed, perhaps not for the last time: a server gets what is still to be written, and says if it cannot.
 */
static void do_flush(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *file)
{
        struct node *node = nodes_get(number);
        int r = 0;

        if (node != NULL)
                locks_drop(node, file->lock_owner);
        if (shared->network) {
                int fd = dup((int)file->fh);

                if (fd < 0 || close(fd) < 0)
                        r = -errno;
        }
        reply_error(request, r);
}

/* Answered first: should we be killed, it is not done twice, when the descriptor may be another file's. */
static void do_release(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *file)
{
        struct node *node = nodes_get(number);
        cleanup_node_fd struct node_fd held = NO_FD;
        const bool flock_release = file->flock_release;
        const int fd = (int)file->fh;

        if (node != NULL)
                held = nodes_open(node); /* it may be forgotten as soon as this is answered */
        reply_error(request, 0);
        if (node != NULL) {
                end_pass_through(node);
                locks_drop_file(node, fd);
        }
        descriptor_end(fd);
        if (flock_release)
                locks_changed();
}

static void do_fsync(fuse_req_t request, fuse_ino_t number, int data_only, struct fuse_file_info *file)
{
        (void)number;
        reply_error(request, (data_only ? fdatasync((int)file->fh) : fsync((int)file->fh)) < 0 ? -errno : 0);
}

static void do_fallocate(fuse_req_t request, fuse_ino_t number, int mode, off_t offset, off_t length,
                         struct fuse_file_info *file)
{
        int r = act_as_caller(request);

        (void)number;
        if (r == 0 && fallocate((int)file->fh, mode, offset, length) < 0)
                r = -errno;
        reply_error(request, r);
}

static void do_copy(fuse_req_t request, fuse_ino_t from, off_t from_offset, struct fuse_file_info *from_file,
                    fuse_ino_t to, off_t to_offset, struct fuse_file_info *to_file, size_t length, int flags)
{
        ssize_t n = act_as_caller(request);

        (void)from;
        (void)to;
        if (n == 0) {
                n = copy_file_range((int)from_file->fh, &from_offset, (int)to_file->fh, &to_offset, length,
                                    (unsigned)flags);
                n = n < 0 ? -errno : n;
        }
        if (n < 0)
                reply_error(request, (int)n);
        else
                (void)fuse_reply_write(request, (size_t)n);
}

static void do_lseek(fuse_req_t request, fuse_ino_t number, off_t offset, int whence, struct fuse_file_info *file)
{
        off_t found = lseek((int)file->fh, offset, whence);

        (void)number;
        if (found < 0)
                reply_error(request, -errno);
        else
                (void)fuse_reply_lseek(request, found);
}

/* ---- directories */

/* Where the next getdents64() of a directory begins, as the container's kernel counts; -1: elsewhere. */
static int64_t position_of(int fd)
{
        return (uint32_t)fd < DESCRIPTORS_MAX ? shared->positions[fd] : -1;
}

static void set_position(int fd, int64_t position)
{
        if ((uint32_t)fd < DESCRIPTORS_MAX)
                shared->positions[fd] = position;
}

static void do_opendir(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *file)
{
        cleanup_node_fd struct node_fd fd = NO_FD;
        struct node *node;
        int opened = -1;
        int r = begin(request, number, &node, &fd);

        if (r == 0)
                r = descriptor_room();
        if (r == 0 && (opened = ATTEMPT(request, openat(fd.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC))) < 0)
                r = -errno;
        if (r < 0) {
                reply_error(request, r);
                return;
        }
        file->fh = (uint64_t)opened;
        descriptor_use(opened, USE_OPEN);
        set_position(opened, 0);
        if (fuse_reply_open(request, file) < 0)
                descriptor_end(opened);
}

struct list {
        fuse_req_t request;
        char *out;
        size_t room;
        bool plus;
        int directory_fd;
};

/* Another entry, if there is room for it: false. What could not be looked up is named all the same. */
static bool add_entry(struct list *list, const struct dirent64 *entry)
{
        struct fuse_entry_param parameters = { .attr = { .st_ino = entry->d_ino,
                                                         .st_mode = (mode_t)DTTOIF(entry->d_type) } };
        bool dots = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
        struct node *node = NULL;
        struct stat st;
        size_t length;

        if (!list->plus)
                length = fuse_add_direntry(list->request, list->out, list->room, entry->d_name, &parameters.attr,
                                           entry->d_off);
        else {
                if (!dots &&
                    fuse_add_direntry_plus(list->request, NULL, 0, entry->d_name, &parameters, 0) <= list->room &&
                    nodes_look_up(list->directory_fd, entry->d_name, &node, &st) == 0)
                        parameters = entry_of(node, &st);
                length = fuse_add_direntry_plus(list->request, list->out, list->room, entry->d_name, &parameters,
                                                entry->d_off);
        }
        if (length > list->room) {
                if (node != NULL)
                        nodes_forget(node, 1);
                return false;
        }
        list->out += length;
        list->room -= length;
        return true;
}

static void read_directory(fuse_req_t request, size_t size, off_t offset, const struct fuse_file_info *file, bool plus)
{
        char *answer = scratch();
        char *entries = answer + READ_MAX / 2;
        struct list list = { .request = request, .out = answer, .plus = plus, .directory_fd = (int)file->fh };
        /* an entry takes so many times the room in the answer, at most, that it takes here: whatever is read fits */
        const size_t times = plus ? 7 : 2;
        int64_t position = offset;
        int r = answer == NULL ? -ENOMEM : act_as_caller(request);

        if (size > LIST_MAX)
                size = LIST_MAX;
        list.room = size;
        /* only if somebody looks elsewhere: where a position is no more than a number, those behind it move (tmpfs
         * before Linux 6.6) */
        if (r == 0 && (session_replayed() || offset != position_of(list.directory_fd)) &&
            lseek(list.directory_fd, offset, SEEK_SET) < 0)
                r = -errno;
        set_position(list.directory_fd, -1); /* as long as it is not known where we are: we may be killed */
        while (r == 0 && list.room / times >= ENTRY_MAX) {
                ssize_t n = getdents64(list.directory_fd, entries, list.room / times);

                if (n < 0)
                        r = list.room < size ? 0 : -errno;
                if (n <= 0)
                        break;
                for (ssize_t i = 0; i < n;) {
                        const struct dirent64 *entry = (const void *)(entries + i);

                        position = add_entry(&list, entry) ? entry->d_off : -1;
                        i += entry->d_reclen;
                }
        }
        if (r < 0) {
                reply_error(request, r);
                return;
        }
        set_position(list.directory_fd, position);
        (void)fuse_reply_buf(request, answer, size - list.room);
}

static void do_readdir(fuse_req_t request, fuse_ino_t number, size_t size, off_t offset, struct fuse_file_info *file)
{
        (void)number;
        read_directory(request, size, offset, file, /* plus= */ false);
}

static void do_readdirplus(fuse_req_t request, fuse_ino_t number, size_t size, off_t offset,
                           struct fuse_file_info *file)
{
        (void)number;
        read_directory(request, size, offset, file, /* plus= */ true);
}

static void do_releasedir(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *file)
{
        const int fd = (int)file->fh;

        (void)number;
        reply_error(request, 0); /* first, as in do_release() */
        descriptor_end(fd);
}

/* ---- locks */

static void do_getlk(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *file, struct flock *lock)
{
        struct node *node = nodes_get(number);

        if (node == NULL)
                reply_error(request, -ESTALE);
        else
                locks_get(request, node, (int)file->fh, file->lock_owner, lock);
}

static void do_setlk(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *file, struct flock *lock, int wait)
{
        struct node *node = nodes_get(number);

        if (node == NULL)
                reply_error(request, -ESTALE);
        else
                locks_set(request, node, (int)file->fh, file->lock_owner, lock, wait != 0);
}

static void do_flock(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *file, int operation)
{
        (void)number;
        locks_flock(request, (int)file->fh, operation);
}

static void do_init(void *data, struct fuse_conn_info *connection)
{
        static const unsigned wanted[] = { FUSE_CAP_POSIX_ACL, FUSE_CAP_DONT_MASK, FUSE_CAP_ATOMIC_O_TRUNC,
                                           FUSE_CAP_CACHE_SYMLINKS, FUSE_CAP_PARALLEL_DIROPS };

        (void)data;
        for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
                connection->want |= connection->capable & wanted[i];
        /* written at once: what is still in a cache of ours when a server refuses it would be lost without a word */
        connection->want &= ~(unsigned)(FUSE_CAP_WRITEBACK_CACHE | FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE |
                                        FUSE_CAP_SPLICE_MOVE);
        connection->max_background = 64;
}

const struct fuse_lowlevel_ops operations = { .init = do_init,
                                              .lookup = do_lookup,
                                              .forget = do_forget,
                                              .forget_multi = do_forget_multi,
                                              .getattr = do_getattr,
                                              .setattr = do_setattr,
                                              .readlink = do_readlink,
                                              .mknod = do_mknod,
                                              .mkdir = do_mkdir,
                                              .unlink = do_unlink,
                                              .rmdir = do_rmdir,
                                              .symlink = do_symlink,
                                              .rename = do_rename,
                                              .link = do_link,
                                              .open = do_open,
                                              .create = do_create,
                                              .read = do_read,
                                              .write = do_write,
                                              .flush = do_flush,
                                              .release = do_release,
                                              .fsync = do_fsync,
                                              .opendir = do_opendir,
                                              .readdir = do_readdir,
                                              .readdirplus = do_readdirplus,
                                              .releasedir = do_releasedir,
                                              .fsyncdir = do_fsync,
                                              .statfs = do_statfs,
                                              .setxattr = do_setxattr,
                                              .getxattr = do_getxattr,
                                              .listxattr = do_listxattr,
                                              .removexattr = do_removexattr,
                                              .getlk = do_getlk,
                                              .setlk = do_setlk,
                                              .flock = do_flock,
                                              .fallocate = do_fallocate,
                                              .copy_file_range = do_copy,
                                              .lseek = do_lseek };
