/* SPDX-License-Identifier: Apache-2.0 */
#include "operation.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "caches.h"
#include "caller_ids.h"
#include "request.h"
#include "source_ids.h"

#define ERRNO_END 512     /* the first that is internal to the kernel: include/linux/errno.h */
#define NOT_SUPPORTED 524 /* ENOTSUPP there */
#define BAD_HANDLE 521

static int links_fd = -1; /* /proc/self/fd */

/* What this thread looked up last. */
static __thread struct {
        pid_t caller; /* a thread of the container; 0: nothing is noted */
        fuse_ino_t directory;
        const struct node *node;
        char name[NAME_MAX + 1];
} noted;

/* Some errors (524 and others, from NFS) are known inside the kernel only; /dev/fuse refuses them. */
void operation_reply_error(fuse_req_t request, int r)
{
        if (r == -NOT_SUPPORTED)
                r = -EOPNOTSUPP;
        else if (r == -BAD_HANDLE)
                r = -ESTALE;
        else if (r <= -ERRNO_END)
                r = -EIO;
        (void)fuse_reply_err(request, -r); /* the caller may have exited */
}

static __thread char *buffer; /* NULL: this thread has needed none */

char *operation_buffer(void)
{
        if (buffer == NULL)
                buffer = aligned_alloc(4096, READ_MAX);
        return buffer;
}

void operation_buffer_empty(void)
{
        if (buffer != NULL)
                (void)madvise(buffer, READ_MAX, MADV_DONTNEED); /* else it stays */
}

/* The ids at the source. False: it has none, or they are of the node's root, which no other user may be. */
static bool take_ids(uid_t *uid, gid_t *gid)
{
        const uid_t was = *uid;

        return source_ids_take(uid, gid) && (*uid != 0 || was == 0);
}

int operation_act_as_caller(fuse_req_t request)
{
        const struct fuse_ctx *context = fuse_req_ctx(request);
        const struct caller_ids *asker = request_asker();
        uid_t uid = context->uid;
        gid_t gid = context->gid;
        int r;

        if (shared->checked)
                r = caller_become(0, 0);
        else if (!take_ids(&uid, &gid))
                r = caller_become(CALLER_NOBODY, CALLER_NOBODY);
        else if (shared->able && context->uid == 0)
                r = caller_become_able(uid, gid);
        else
                r = caller_become(uid, gid);
        return r == 0 && asker != NULL ? caller_take_groups(asker) : r;
}

int operation_act_as_creator(fuse_req_t request)
{
        const struct fuse_ctx *context = fuse_req_ctx(request);
        uid_t uid = context->uid;
        gid_t gid = context->gid;

        if (shared->checked)
                return caller_become_able(uid, gid);
        return take_ids(&uid, &gid) ? 0 : -EOVERFLOW; /* else they are the caller's already */
}

int operation_has_owner(fuse_req_t request, struct node *node, int fd, enum rights enough)
{
        const struct fuse_ctx *context = fuse_req_ctx(request);
        struct stat st;
        bool known;

        if (fstatat(fd, "", &st, AT_EMPTY_PATH) < 0)
                return -errno;
        if (shared->checked && st.st_uid == node->told_uid && st.st_gid == node->told_gid)
                return caches_owner_is_known(node, (pid_t)context->pid, &st) ? 0 : -ESTALE;
        if (shared->checked) {
                caches_drop_attributes(node); /* it asks again before it checks the next time */
                return -EPERM;
        }
        source_ids_show(&st.st_uid, &st.st_gid);
        known = shared->mappable ? caller_ids_know((pid_t)context->pid, st.st_uid, st.st_gid)
                                 : caller_knows(st.st_uid, st.st_gid);
        return known || (enough == RIGHTS_OF_OWNER && context->uid == st.st_uid) ? 0 : -EPERM;
}

int operation_begin(fuse_req_t request, fuse_ino_t number, struct node **ret_node, struct node_fd *ret_fd)
{
        struct node *node = nodes_get(number);
        int r;

        *ret_node = node;
        if (node == NULL)
                return -ESTALE;
        if ((r = operation_act_as_caller(request)) < 0)
                return r;
        *ret_fd = nodes_open(node);
        if (ret_fd->fd >= 0)
                request_changes();
        return ret_fd->fd < 0 ? ret_fd->fd : 0;
}

void operation_keep_setgid(fuse_req_t request, int fd)
{
        struct stat st;
        gid_t group;

        if (!shared->checked && fuse_req_ctx(request)->uid != 0) {
                (void)caller_add_groups(fuse_req_ctx(request)->pid);
                return;
        }
        if (fstatat(fd, "", &st, AT_EMPTY_PATH) < 0)
                return;
        group = st.st_gid;
        source_ids_show(&st.st_uid, &st.st_gid);
        if (caller_knows(st.st_uid, st.st_gid))
                caller_join(request_asker(), group);
}

void operation_keep_locking(fuse_req_t request, struct node *node, int fd)
{
        if (!shared->checked && node != NULL && caches_has_mode_of_locking(node, fd))
                operation_keep_setgid(request, fd);
}

int operation_lose_setgid(int fd)
{
        struct stat st;

        if (fstatat(fd, "", &st, AT_EMPTY_PATH) < 0)
                return -errno;
        return caller_become(0, st.st_gid != CALLER_NOBODY ? CALLER_NOBODY : CALLER_NOBODY - 1);
}

int operation_begin_links(void)
{
        links_fd = open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
        return links_fd < 0 ? -errno : 0;
}

int operation_open(int fd, int flags)
{
        char name[12];

        (void)snprintf(name, sizeof name, "%d", fd);
        return openat(links_fd, name, flags);
}

int operation_open_as_root(int fd, int flags)
{
        const int was = setfsuid(0);
        const int opened = operation_open(fd, flags);
        const int saved = errno;

        (void)setfsuid((uid_t)was);
        errno = saved;
        return opened;
}

/* This thread answers its request with that node, which has that name in that directory. */
static void note_name(fuse_req_t request, const struct node *node, fuse_ino_t directory, const char *name)
{
        const size_t length = strlen(name);

        noted.caller = 0;
        if (shared->network || node->fd < 0 || !S_ISREG(node->mode) || length >= sizeof noted.name)
                return; /* its inode number alone does not tell that a file is the same */
        (void)memcpy(noted.name, name, length + 1);
        noted.node = node;
        noted.directory = directory;
        noted.caller = fuse_req_ctx(request)->pid;
}

int operation_open_noted(fuse_req_t request, const struct node *node, int flags, struct stat *ret_stat)
{
        cleanup_node_fd struct node_fd directory = NO_FD;
        struct node *parent;
        int fd;

        /* the name may be another file's by now, which must not be truncated */
        if (noted.caller <= 0 || noted.caller != fuse_req_ctx(request)->pid || noted.node != node || node->fd < 0 ||
            (flags & O_TRUNC) != 0 || (parent = nodes_get(noted.directory)) == NULL)
                return -1;
        noted.caller = 0;
        directory = nodes_open(parent);
        if (directory.fd < 0)
                return -1;
        /* O_NONBLOCK: nor is a pipe's other end or the end of a lease waited for */
        fd = openat(directory.fd, noted.name, flags | O_NOFOLLOW | O_NONBLOCK);
        if (fd < 0 || (fstat(fd, ret_stat) == 0 && ret_stat->st_dev == node->device && ret_stat->st_ino == node->inode))
                return fd;
        (void)close(fd); /* another file's; nothing was written to it */
        return -1;
}

struct link_path operation_path(int fd)
{
        struct link_path path;

        (void)snprintf(path.text, sizeof path.text, "/proc/self/fd/%d", fd);
        return path;
}

double operation_cached_seconds(const struct node *node)
{
        return nodes_alone(node) && !caches_may_be_mapped(node) ? CACHED_SECONDS_ALONE : CACHED_SECONDS;
}

struct fuse_entry_param operation_entry(const struct node *node, const struct stat *st)
{
        struct fuse_entry_param entry = { .ino = nodes_number(node),
                                          .generation = node->generation,
                                          .attr = *st,
                                          .attr_timeout = operation_cached_seconds(node),
                                          .entry_timeout = nodes_alone(node) || S_ISDIR(node->mode)
                                                                   ? operation_cached_seconds(node)
                                                                   : 0 };

        entry.attr.st_ino = nodes_shown_inode(st->st_dev, st->st_ino);
        source_ids_show(&entry.attr.st_uid, &entry.attr.st_gid);
        return entry;
}

void operation_reply_entry(fuse_req_t request, int r, fuse_ino_t directory, int directory_fd, const char *name)
{
        struct node *node = NULL;
        struct stat st;

        if (r == 0) {
                r = nodes_look_up(directory_fd, name, /* crosses= */ true, &node, &st);
                if ((r == -EACCES || r == -EPERM) && caller_add_groups(fuse_req_ctx(request)->pid))
                        r = nodes_look_up(directory_fd, name, /* crosses= */ true, &node, &st);
        }
        if (node != NULL) {
                struct fuse_entry_param entry = operation_entry(node, &st);

                caches_tell(node, fuse_req_ctx(request)->pid, &st);
                note_name(request, node, directory, name);
                if (fuse_reply_entry(request, &entry) < 0)
                        nodes_forget(node, 1); /* the kernel did not take the answer */
        } else if (r == -ENOENT && shared->alone && request_current()->opcode == FUSE_LOOKUP) {
                const struct fuse_entry_param none = { .entry_timeout = CACHED_SECONDS_ALONE };

                (void)fuse_reply_entry(request, &none);
        } else
                operation_reply_error(request, r);
}

bool operation_done_before(int errnum, int expected)
{
        return request_may_have_changed() && errnum == expected;
}
