/* SPDX-License-Identifier: Apache-2.0 */
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "locks.h"
#include "operation.h"
#include "passthrough.h"
#include "request.h"

/* The flags for opening the source, from those of the open file in the container. */
static int open_flags(int flags)
{
        flags &= ~(O_NOFOLLOW | O_CREAT | O_EXCL | O_NOCTTY);
        if (!shared->network)
                flags &= ~O_DIRECT; /* needs aligned buffers; not so on network filesystems */
        /* each write request says it anew: F_SETFL can clear it */
        return (flags & ~O_APPEND) | O_CLOEXEC;
}

static int64_t nanoseconds(const struct timespec *time)
{
        return (int64_t)time->tv_sec * 1000000000 + time->tv_nsec;
}

/* Whether the file is unchanged since it was last opened, so that the page cache is valid (close-to-open). */
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
        int backing = passthrough_open(node, fd);
        struct stat st;

        file->fh = (uint64_t)fd;
        descriptor_use(fd, USE_OPEN);
        /* a file opened for reading has nothing to write back; its locks are released when it is closed */
        file->noflush = !shared->network && (file->flags & O_ACCMODE) == O_RDONLY;
        /* for a file that is passed through the kernel refuses this flag (EIO) */
        file->keep_cache = backing == 0 && fstat(fd, &st) == 0 && is_as_seen(node, &st);
        request_pass_through(backing);
}

static void drop_file(struct node *node, int fd)
{
        request_pass_through(0);
        passthrough_close(node);
        descriptor_end(fd);
}

void files_open(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *file)
{
        cleanup_node_fd struct node_fd fd = NO_FD;
        struct node *node;
        int opened = -1;
        int r = operation_begin(request, number, &node, &fd);

        if (r == 0)
                r = descriptor_check_limit();
        if (r == 0 && !S_ISREG(node->mode))
                r = -EOPNOTSUPP; /* the kernel opens pipes, sockets and devices by itself */
        if (r == 0 && (opened = ATTEMPT(request, open(operation_path(fd.fd).text, open_flags(file->flags)))) < 0)
                r = -errno;
        if (r < 0) {
                operation_reply_error(request, r);
                return;
        }
        adopt_file(node, opened, file);
        if (fuse_reply_open(request, file) < 0)
                drop_file(node, opened);
}

/* O_NONBLOCK: if the name is a pipe by now, do not wait for its other end. */
static int create(int directory_fd, const char *name, int flags, mode_t mode)
{
        return openat(directory_fd, name, open_flags(flags) | (flags & O_EXCL) | O_CREAT | O_NOFOLLOW | O_NONBLOCK,
                      mode);
}

void files_create(fuse_req_t request, fuse_ino_t parent, const char *name, mode_t mode, struct fuse_file_info *file)
{
        cleanup_node_fd struct node_fd fd = NO_FD;
        struct fuse_entry_param entry;
        struct node *node;
        struct stat now;
        struct stat st;
        int opened = -1;
        int r = operation_begin(request, parent, &node, &fd);

        if (r == 0)
                r = descriptor_check_limit();
        if (r == 0) {
                int flags = request_may_have_changed() ? file->flags & ~O_EXCL : file->flags;

                caller_umask(fuse_req_ctx(request)->umask);
                if ((mode & S_ISGID) != 0)
                        operation_keep_setgid(request, fd.fd);
                opened = ATTEMPT(request, create(fd.fd, name, flags, mode));
                if (opened < 0)
                        r = -errno;
        }
        if (r == 0)
                r = nodes_open_name(fd.fd, name, &node, &st);
        if (r == 0 && (fstat(opened, &now) < 0 || now.st_ino != st.st_ino || !S_ISREG(st.st_mode))) {
                nodes_forget(node, 1);
                r = S_ISREG(st.st_mode) ? -ESTALE : -EEXIST; /* a concurrent rename; or it is no regular file */
        }
        if (r < 0) {
                if (opened >= 0)
                        (void)close(opened); /* nothing was written to it */
                operation_reply_error(request, r);
                return;
        }
        adopt_file(node, opened, file);
        entry = operation_entry(node, &st);
        if (fuse_reply_create(request, &entry, file) < 0) {
                drop_file(node, opened);
                nodes_forget(node, 1);
        }
}

void files_read(fuse_req_t request, fuse_ino_t number, size_t size, off_t offset, struct fuse_file_info *file)
{
        char *buffer = operation_buffer();
        ssize_t n;

        (void)number;
        if (buffer == NULL) {
                operation_reply_error(request, -ENOMEM);
                return;
        }
        n = pread((int)file->fh, buffer, size < READ_MAX ? size : READ_MAX, offset);
        if (n < 0)
                operation_reply_error(request, -errno);
        else
                (void)fuse_reply_buf(request, buffer, (size_t)n);
}

void files_write(fuse_req_t request, fuse_ino_t number, const char *data, size_t size, off_t offset,
                 struct fuse_file_info *file)
{
        ssize_t n;
        int r = 0;

        (void)number;
        /* as the caller, so that the write clears the setuid bit; a page that is written back later has no caller */
        if (!file->writepage)
                r = operation_act_as_caller(request);
        if (r < 0) {
                operation_reply_error(request, r);
                return;
        }
        /* the file may be longer than the container's kernel knows: others append, too */
        if ((file->flags & O_APPEND) != 0) {
                const struct iovec part = { .iov_base = (void *)data, .iov_len = size };

                n = pwritev2((int)file->fh, &part, 1, offset, RWF_APPEND);
        } else
                n = pwrite((int)file->fh, data, size, offset);
        if (n < 0)
                operation_reply_error(request, -errno);
        else
                (void)fuse_reply_write(request, (size_t)n);
}

/* A descriptor was closed, perhaps not the last. Closing a copy here writes data to a server, and reports errors. */
void files_flush(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *file)
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
        operation_reply_error(request, r);
}

/* Answer first: if this daemon is killed, the next must not close the descriptor, which may be another file's. */
void files_release(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *file)
{
        struct node *node = nodes_get(number);
        cleanup_node_fd struct node_fd held = NO_FD;
        const bool flock_release = file->flock_release;
        const int fd = (int)file->fh;

        if (node != NULL)
                held = nodes_open(node); /* the kernel may forget the node as soon as it has the answer */
        operation_reply_error(request, 0);
        if (node != NULL) {
                passthrough_close(node);
                locks_drop_file(node, fd);
        }
        descriptor_end(fd);
        if (flock_release)
                locks_changed();
}

void files_fsync(fuse_req_t request, fuse_ino_t number, int data_only, struct fuse_file_info *file)
{
        (void)number;
        operation_reply_error(request, (data_only ? fdatasync((int)file->fh) : fsync((int)file->fh)) < 0 ? -errno : 0);
}

void files_fallocate(fuse_req_t request, fuse_ino_t number, int mode, off_t offset, off_t length,
                     struct fuse_file_info *file)
{
        int r = operation_act_as_caller(request);

        (void)number;
        if (r == 0 && fallocate((int)file->fh, mode, offset, length) < 0)
                r = -errno;
        operation_reply_error(request, r);
}

void files_copy(fuse_req_t request, fuse_ino_t from, off_t from_offset, struct fuse_file_info *from_file, fuse_ino_t to,
                off_t to_offset, struct fuse_file_info *to_file, size_t length, int flags)
{
        ssize_t n = operation_act_as_caller(request);

        (void)from;
        (void)to;
        if (n == 0) {
                n = copy_file_range((int)from_file->fh, &from_offset, (int)to_file->fh, &to_offset, length,
                                    (unsigned)flags);
                n = n < 0 ? -errno : n;
        }
        if (n < 0)
                operation_reply_error(request, (int)n);
        else
                (void)fuse_reply_write(request, (size_t)n);
}

void files_lseek(fuse_req_t request, fuse_ino_t number, off_t offset, int whence, struct fuse_file_info *file)
{
        off_t found = lseek((int)file->fh, offset, whence);

        (void)number;
        if (found < 0)
                operation_reply_error(request, -errno);
        else
                (void)fuse_reply_lseek(request, found);
}
