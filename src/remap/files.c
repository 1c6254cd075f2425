/* SPDX-License-Identifier: Apache-2.0 */
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "append.h"
#include "caches.h"
#include "caller.h"
#include "closing.h"
#include "descriptors.h"
#include "locks.h"
#include "operation.h"
#include "passthrough.h"
#include "request.h"
#include "source_ids.h"
#include "waiters.h"

#define CLOCK_TICK_NS 2000000000 /* of the coarsest filesystem's times */

/* The flags for opening the source, from those of the open file in the container. */
static int open_flags(int flags)
{
        flags &= ~(O_NOFOLLOW | O_CREAT | O_EXCL | O_NOCTTY);
        if (!shared->network)
                flags &= ~O_DIRECT; /* needs aligned buffers; not so on network filesystems */
        /* each write request says it anew: F_SETFL can clear it */
        return (flags & ~O_APPEND) | O_CLOEXEC;
}

/*
 * Whether the file is unchanged since it was last opened, so that the page cache is valid (close-to-open). A change
 * time that was recent then does not tell: more may have changed at the same time, as far as the filesystem's clock
 * shows. Nor does what an earlier daemon noted for the request that this thread does again.
 */
static bool is_as_seen(struct node *node, const struct stat *st)
{
        struct file_state state = caches_state(st);
        bool same = caches_same(&node->seen, &state);
        struct timespec now;

        (void)clock_gettime(CLOCK_REALTIME, &now); /* cannot fail for this clock */
        if (state.ctime_ns + CLOCK_TICK_NS >= caches_nanoseconds(&now))
                state.size = -1;
        node->seen = state;
        return same && !request_replayed();
}

static bool is_for_writing(const struct fuse_file_info *file)
{
        return (file->flags & O_ACCMODE) != O_RDONLY;
}

/* An open file. st: as it is; the kernel has these attributes, or is about to be told. */
static void adopt_file(struct node *node, int fd, const struct stat *st, struct fuse_file_info *file)
{
        int backing = passthrough_open(node, fd);

        file->fh = (uint64_t)fd;
        request_note_opened(fd);
        descriptor_use(fd, USE_OPEN);
        if (is_for_writing(file))
                caches_begin_writing(node);
        /* a change that a server counts need not show in its times; its filesystem here has a page cache, too. For a
         * file that is passed through the kernel refuses this flag (EIO) */
        file->keep_cache = backing == 0 && (nodes_alone(node) || (!shared->network && is_as_seen(node, st)));
        /* else the kernel asks for the pieces of a large write all at once, and they are appended in any order. Before Linux 6.7
         * it keeps pages that are old then, until attributes tell, which it does not ask for where it is alone */
        file->direct_io =
                backing == 0 && !nodes_alone(node) && (file->flags & (O_APPEND | O_DIRECT)) == (O_APPEND | O_DIRECT);
        request_pass_through(backing);
        if (backing > 0 && nodes_alone(node) && (file->flags & O_ACCMODE) == O_RDWR)
                caches_note_mapped(node);
}

/* The kernel does not ask again for attributes, and does not note what is written to mapped pages of the source. */
static bool is_alone_and_passed(const struct node *node)
{
        return nodes_alone(node) && node->backing > 0;
}

/* Size and times it sees itself or asks for, and set-id bits that a write takes it does not believe in. */
static bool knows_what_is_written(const struct node *node)
{
        return !is_alone_and_passed(node) && caches_know_no_set_id(node);
}

/*
 * Whether the kernel does not know what was written after files_flush(): to mapped pages, or by a call that was under way.
 * Only then its attributes may be dropped: who executes the file now asks for them at this moment, and the kernel ignores
 * the answer and goes on with the old ones when they are dropped meanwhile.
 */
static bool was_written_since(struct node *node, int fd)
{
        struct stat st;
        bool lost;

        if (knows_what_is_written(node) || fstat(fd, &st) < 0)
                return false;
        lost = caches_note_set_id(node, &st);
        return (is_alone_and_passed(node) && caches_note(node, &st)) || lost;
}

static void end_file(struct node *node, const struct fuse_file_info *file)
{
        if (is_for_writing(file)) {
                caches_end_writing(node);
                if (was_written_since(node, (int)file->fh))
                        caches_drop_attributes(node);
        }
        passthrough_close(node, (int)file->fh);
}

static void drop_file(struct node *node, const struct fuse_file_info *file)
{
        request_pass_through(0);
        end_file(node, file);
        descriptor_end((int)file->fh);
}

/* Open a node. Gives: its attributes, not on network filesystems. Returns a descriptor or negative errno. */
static int open_node(fuse_req_t request, struct node *node, int fd, const struct fuse_file_info *file,
                     struct stat *ret_stat)
{
        const int flags = open_flags(file->flags);
        const bool appends = !shared->passthrough && (file->flags & (O_ACCMODE | O_APPEND)) == (O_WRONLY | O_APPEND);
        int opened;
        int r;

        if ((flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC) != 0)
                operation_keep_locking(request, node,
                                       fd); /* what is passed through is written with the rights of now */
        opened = operation_open_noted(request, node, flags, ret_stat);
        if (opened >= 0)
                return opened;
        opened = ATTEMPT(request, operation_open(fd, flags));
        /* what may only be appended to (chattr +a) is opened for nothing else. Not to be read, too, or passed through: mapped, or
         * after F_SETFL, it could be overwritten, as the container's kernel does not know the flag */
        if (opened < 0 && errno == EPERM && appends)
                opened = ATTEMPT(request, operation_open(fd, flags | O_APPEND));
        if (opened < 0)
                return -errno;
        if (shared->network || fstat(opened, ret_stat) == 0)
                return opened;
        r = -errno;
        (void)close(opened); /* nothing was written to it */
        return r;
}

void files_open(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *file)
{
        cleanup_node_fd struct node_fd fd = NO_FD;
        struct node *node;
        struct stat st = {};
        int opened = -1;
        int r = operation_begin(request, number, &node, &fd);

        if (r == 0)
                r = descriptors_check(fuse_req_ctx(request)->pid, fuse_req_ctx(request)->uid);
        if (r == 0 && !S_ISREG(node->mode))
                r = -EOPNOTSUPP; /* the kernel opens pipes, sockets and devices by itself */
        if (r == 0 && (opened = open_node(request, node, fd.fd, file, &st)) < 0)
                r = opened;
        if (r < 0) {
                if (r == -ESTALE && node != NULL)
                        node->stale = shared->network; /* the kernel looks its name up again */
                operation_reply_error(request, r);
                return;
        }
        node->stale = false;
        if (!nodes_alone(node) && (shared->network || !caches_have_attributes(node, fuse_req_ctx(request)->pid, &st)))
                caches_drop_attributes(node);
        adopt_file(node, opened, &st, file);
        if (fuse_reply_open(request, file) < 0)
                drop_file(node, file);
}

/*
 * A file that somebody made just now, where the source's kernel would not ask whether the caller may open it: mounts are id-mapped,
 * the source is a container's, or the caller is root, who has no rights over a file of an owner that its container does not have.
 * The kernel checked that a file may be created, but not that this one may be opened. For ESTALE it looks the name up again, and asks to open the
 * file. What the earlier daemon made for the same request belongs to the caller.
 */
static int open_existing(int directory_fd, const char *name, int flags)
{
        int fd = openat(directory_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        int opened = -1;
        struct stat st;

        if (fd < 0 || !request_may_have_changed() || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
            st.st_uid != caller_uid())
                errno = (flags & O_EXCL) != 0 ? EEXIST : ESTALE;
        else if ((opened = operation_open(fd, open_flags(flags))) < 0 && errno == EACCES && !shared->mappable)
                opened = operation_open_as_root(fd, open_flags(flags)); /* which its mode may forbid to its owner */
        if (fd >= 0) {
                int saved = errno;

                (void)close(fd); /* O_PATH: nothing to lose */
                errno = saved;
        }
        return opened;
}

/* O_NONBLOCK: if the name is a pipe by now, do not wait for its other end. */
static int create(int directory_fd, const char *name, int flags, mode_t mode)
{
        int opened;

        if (shared->mappable || source_ids_differ() || caller_uid() == 0) {
                opened = openat(directory_fd, name, open_flags(flags) | O_EXCL | O_CREAT | O_NOFOLLOW, mode);
                return opened >= 0 || errno != EEXIST ? opened : open_existing(directory_fd, name, flags);
        }
        if (request_may_have_changed())
                flags &= ~O_EXCL;
        opened = openat(directory_fd, name, open_flags(flags) | (flags & O_EXCL) | O_CREAT | O_NOFOLLOW | O_NONBLOCK,
                        mode);
        return opened < 0 && operation_done_before(errno, EACCES) ? open_existing(directory_fd, name, flags) : opened;
}

/*
 * A file without a name (O_TMPFILE). It can be given one, whatever the caller asked for: whether that may be, the kernel
 * knows that asks for it (O_EXCL). What an earlier daemon made for the same request is gone with its descriptor.
 */
static int create_unnamed(int directory_fd, int flags, mode_t mode)
{
        return openat(directory_fd, ".", open_flags(flags) | O_TMPFILE, mode);
}

/* FUSE_CREATE and FUSE_TMPFILE. */
void files_create(fuse_req_t request, fuse_ino_t parent, const char *name, mode_t mode, struct fuse_file_info *file)
{
        const bool unnamed = request_current()->opcode == NEWER_TMPFILE;
        cleanup_node_fd struct node_fd fd = NO_FD;
        struct fuse_entry_param entry;
        struct node *node;
        struct stat now = {};
        struct stat st;
        int opened = -1;
        int r = operation_begin(request, parent, &node, &fd);

        if (r == 0)
                r = descriptors_check(fuse_req_ctx(request)->pid, fuse_req_ctx(request)->uid);
        if (r == 0)
                r = operation_act_as_creator(request);
        if (r == 0) {
                caller_umask(fuse_req_ctx(request)->umask);
                if ((mode & S_ISGID) != 0)
                        operation_keep_setgid(request, fd.fd);
                opened = ATTEMPT(request, unnamed ? create_unnamed(fd.fd, file->flags, mode)
                                                  : create(fd.fd, name, file->flags, mode));
                if (opened < 0)
                        r = -errno;
        }
        if (r == 0)
                r = unnamed ? nodes_open_file(opened, &node, &st)
                            : nodes_open_name(fd.fd, name, /* crosses= */ true, &node, &st);
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
        if (shared->network && !shared->alone)
                caches_drop_attributes(node);
        adopt_file(node, opened, &now, file);
        /* of a new file the kernel knows nothing else: no answer about it can be on its way */
        caches_tell_owner(node, &now);
        if (node->lookups > 1)
                caches_tell(node, fuse_req_ctx(request)->pid, &now);
        entry = operation_entry(node, &now);
        if (fuse_reply_create(request, &entry, file) < 0) {
                drop_file(node, file);
                nodes_forget(node, 1);
        }
}

/*
 * The kernel takes an answer that is shorter than it asked for as the file's end. A server's filesystem may read less at a
 * time: 9p with O_NONBLOCK, and FUSE without a page cache.
 */
static ssize_t read_all(int fd, char *buffer, size_t size, off_t offset)
{
        size_t done = 0;
        ssize_t n;

        do {
                n = pread(fd, buffer + done, size - done, offset + (off_t)done);
                done += n > 0 ? (size_t)n : 0;
        } while (shared->network && n > 0 && done < size);
        return n < 0 && done == 0 ? -errno : (ssize_t)done;
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
        n = read_all((int)file->fh, buffer, size < READ_MAX ? size : READ_MAX, offset);
        if (n < 0)
                operation_reply_error(request, (int)n);
        else
                (void)fuse_reply_buf(request, buffer, (size_t)n);
}

/* Before a call that changes an open file and takes its set-id bits. Returns 0 or negative errno. */
static int begin_change(fuse_req_t request, fuse_ino_t number, const struct fuse_file_info *file)
{
        int r = operation_act_as_caller(request);

        if (r == 0)
                operation_keep_locking(request, nodes_get(number), (int)file->fh);
        return r;
}

void files_write(fuse_req_t request, fuse_ino_t number, const char *data, size_t size, off_t offset,
                 struct fuse_file_info *file)
{
        ssize_t n;
        int r = 0;

        /* as the caller, so that the write clears the setuid bit; a page that is written back later has no caller */
        if (!file->writepage)
                r = begin_change(request, number, file);
        if (r < 0) {
                operation_reply_error(request, r);
                return;
        }
        if ((file->flags & O_APPEND) != 0) {
                append(request, (int)file->fh, data, size);
                return;
        }
        n = pwrite((int)file->fh, data, size, offset);
        if (n < 0)
                operation_reply_error(request, -errno);
        else
                (void)fuse_reply_write(request, (size_t)n);
}

/*
 * What a write changed of a file's attributes the container's kernel does not know, but for size and times if it saw the
 * write. It would execute a program with the set-id bits that a write took away, which it does not while that is open for
 * writing.
 */
static void tell_written(struct node *node, int fd)
{
        struct stat st;
        bool lost;

        if (knows_what_is_written(node) || (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY || fstat(fd, &st) < 0)
                return;
        lost = caches_note_set_id(node, &st);
        if (is_alone_and_passed(node) || lost)
                caches_drop_attributes(node);
        if (is_alone_and_passed(node))
                (void)caches_note(node, &st);
}

/* A descriptor was closed, perhaps not the last. Closing a copy here writes data to a server, and reports errors. */
void files_flush(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *file)
{
        struct node *node = nodes_get(number);
        /* it gets no answer of a server that is silent, and then another process may be that owner of locks */
        const bool dying =
                shared->network && node != NULL && node->owners > 0 && caller_is_dying(fuse_req_ctx(request)->pid);
        int r = 0;

        if (dying)
                locks_drop(node, file->lock_owner);
        if (shared->network) {
                int fd = dup((int)file->fh);

                if (fd < 0 || close(fd) < 0)
                        r = -errno;
        }
        if (node != NULL && !request_given_up()) {
                tell_written(node, (int)file->fh);
                if (!dying)
                        locks_drop(node, file->lock_owner); /* only now: who gets the lock next must find the data */
        }
        operation_reply_error(request, r);
}

/*
 * The next daemon can repeat what is done before the descriptor is recorded as released, and does nothing but close that
 * afterwards (released.c): the number may be another file's.
 */
void files_release(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *file)
{
        struct node *node = nodes_get(number);
        cleanup_node_fd struct node_fd held = NO_FD;
        const bool flock_release = file->flock_release;
        const struct fuse_file_info ended = *file; /* it is gone with the request */
        const int fd = (int)file->fh;

        if (node != NULL)
                held = nodes_open(node); /* the kernel may forget the node as soon as it has the answer */
        if (node != NULL)
                locks_drop_file(node, fd);
        descriptor_use(fd, USE_RELEASED);
        operation_reply_error(request, 0);
        if (node != NULL)
                end_file(node, &ended);
        closing_close(fd);
        if (flock_release)
                waiters_retry();
}

void files_fsync(fuse_req_t request, fuse_ino_t number, int data_only, struct fuse_file_info *file)
{
        (void)number;
        operation_reply_error(request, (data_only ? fdatasync((int)file->fh) : fsync((int)file->fh)) < 0 ? -errno : 0);
}

void files_fallocate(fuse_req_t request, fuse_ino_t number, int mode, off_t offset, off_t length,
                     struct fuse_file_info *file)
{
        int r = begin_change(request, number, file);

        if (r == 0 && fallocate((int)file->fh, mode, offset, length) < 0)
                r = -errno;
        operation_reply_error(request, r);
}

/*
 * How much is copied at one time: nobody waits long for the end of what cannot be interrupted, and callers go on. Of several
 * copies each has its part of it, so that others wait no longer behind many of them.
 */
#define COPY_MAX ((size_t)64 * 1024 * 1024)
#define COPY_BLOCK ((size_t)64 * 1024) /* more than any filesystem's block: parts can be shared */
static int copies;                     /* under way; atomic */

void files_begin(void)
{
        copies = 0;
}

static ssize_t copy_part(int from_fd, off_t from, int to_fd, off_t to, size_t length, unsigned flags)
{
        const int count = __atomic_add_fetch(&copies, 1, __ATOMIC_RELAXED);
        const size_t most = COPY_MAX / (size_t)count / COPY_BLOCK * COPY_BLOCK;
        const ssize_t n = copy_file_range(from_fd, &from, to_fd, &to, length < most ? length : most, flags);
        const int saved = errno;

        __atomic_sub_fetch(&copies, 1, __ATOMIC_RELAXED);
        return n < 0 ? -saved : n;
}

void files_copy(fuse_req_t request, fuse_ino_t from, off_t from_offset, struct fuse_file_info *from_file, fuse_ino_t to,
                off_t to_offset, struct fuse_file_info *to_file, size_t length, int flags)
{
        ssize_t n = begin_change(request, to, to_file);

        (void)from;
        if (n == 0)
                n = copy_part((int)from_file->fh, from_offset, (int)to_file->fh, to_offset, length, (unsigned)flags);
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
