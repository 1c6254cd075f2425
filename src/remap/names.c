/* SPDX-License-Identifier: Apache-2.0 */
#include "names.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "caches.h"
#include "locks.h"
#include "operation.h"
#include "request.h"

void names_lookup(fuse_req_t request, fuse_ino_t parent, const char *name)
{
        cleanup_node_fd struct node_fd fd = NO_FD;
        struct node *node;
        int r = operation_begin(request, parent, &node, &fd);

        if (r == 0 && (strcmp(name, "..") == 0 || strcmp(name, ".") == 0))
                r = -ESTALE; /* looked up only by an NFS server that exports this mount */
        operation_reply_entry(request, r, parent, fd.fd, name);
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

void names_forget(fuse_req_t request, fuse_ino_t number, uint64_t count)
{
        forget(number, count);
        fuse_reply_none(request);
}

void names_forget_multi(fuse_req_t request, size_t count, struct fuse_forget_data *forgets)
{
        for (size_t i = 0; i < count; i++)
                forget(forgets[i].ino, forgets[i].nlookup);
        fuse_reply_none(request);
}

/* device: 0:0 is no device, but an overlay's whiteout, which everybody may make. */
static void make_name(fuse_req_t request, fuse_ino_t parent, const char *name, mode_t mode, dev_t device)
{
        cleanup_node_fd struct node_fd fd = NO_FD;
        struct node *node;
        int r = operation_begin(request, parent, &node, &fd);

        if (r == 0 && (S_ISBLK(mode) || (S_ISCHR(mode) && device != 0)))
                r = -EPERM;
        if (r == 0)
                r = operation_act_as_creator(request);
        if (r == 0) {
                caller_umask(fuse_req_ctx(request)->umask);
                if ((mode & S_ISGID) != 0)
                        operation_keep_setgid(request, fd.fd);
                if (ATTEMPT(request, S_ISDIR(mode) ? mkdirat(fd.fd, name, mode & ~(mode_t)S_IFMT)
                                                   : mknodat(fd.fd, name, mode, 0)) < 0 &&
                    !operation_done_before(errno, EEXIST))
                        r = -errno;
        }
        operation_reply_entry(request, r, parent, fd.fd, name);
}

void names_mknod(fuse_req_t request, fuse_ino_t parent, const char *name, mode_t mode, dev_t device)
{
        make_name(request, parent, name, mode, device);
}

void names_mkdir(fuse_req_t request, fuse_ino_t parent, const char *name, mode_t mode)
{
        make_name(request, parent, name, (mode & ~(mode_t)S_IFMT) | S_IFDIR, 0);
}

void names_symlink(fuse_req_t request, const char *target, fuse_ino_t parent, const char *name)
{
        cleanup_node_fd struct node_fd fd = NO_FD;
        struct node *node;
        int r = operation_begin(request, parent, &node, &fd);

        if (r == 0)
                r = operation_act_as_creator(request);
        if (r == 0 && ATTEMPT(request, symlinkat(target, fd.fd, name)) < 0 && !operation_done_before(errno, EEXIST))
                r = -errno;
        operation_reply_entry(request, r, parent, fd.fd, name);
}

void names_link(fuse_req_t request, fuse_ino_t number, fuse_ino_t parent, const char *name)
{
        cleanup_node_fd struct node_fd directory = NO_FD;
        cleanup_node_fd struct node_fd fd = NO_FD;
        struct node *node;
        int r = operation_begin(request, number, &node, &fd);

        if (r == 0)
                r = operation_begin(request, parent, &node, &directory);
        /* by its path in /proc: before Linux 6.10 AT_EMPTY_PATH needs CAP_DAC_READ_SEARCH */
        if (r == 0 &&
            ATTEMPT(request, linkat(AT_FDCWD, operation_path(fd.fd).text, directory.fd, name, AT_SYMLINK_FOLLOW)) < 0 &&
            !operation_done_before(errno, EEXIST))
                r = -errno;
        operation_reply_entry(request, r, parent, directory.fd, name);
}

static void remove_name(fuse_req_t request, fuse_ino_t parent, const char *name, int flags)
{
        cleanup_node_fd struct node_fd fd = NO_FD;
        struct node *node;
        int r = operation_begin(request, parent, &node, &fd);

        if (r == 0 && (flags & AT_REMOVEDIR) == 0)
                nodes_let_go(fd.fd, name);
        caches_name_goes();
        if (r == 0 && ATTEMPT(request, unlinkat(fd.fd, name, flags)) < 0 && !operation_done_before(errno, ENOENT))
                r = -errno;
        operation_reply_error(request, r);
        caches_name_goes();
}

void names_unlink(fuse_req_t request, fuse_ino_t parent, const char *name)
{
        remove_name(request, parent, name, 0);
}

void names_rmdir(fuse_req_t request, fuse_ino_t parent, const char *name)
{
        remove_name(request, parent, name, AT_REMOVEDIR);
}

/* Whether an earlier daemon has renamed this already, and left a whiteout. */
static bool was_left(int directory_fd, const char *name)
{
        struct stat st;

        return request_may_have_changed() && fstatat(directory_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
               S_ISCHR(st.st_mode) && st.st_rdev == 0;
}

/* Whether an earlier daemon has exchanged the names already; else record which file that is which has the first. */
static bool was_exchanged(int directory_fd, const char *name)
{
        struct stat st;

        if (fstatat(directory_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return false; /* as the exchange will */
        if (request_noted_another(&st))
                return true;
        request_note_file(&st);
        return false;
}

void names_rename(fuse_req_t request, fuse_ino_t parent, const char *name, fuse_ino_t new_parent, const char *new_name,
                  unsigned flags)
{
        cleanup_node_fd struct node_fd from = NO_FD;
        cleanup_node_fd struct node_fd to = NO_FD;
        struct node *node;
        int r = operation_begin(request, parent, &node, &from);

        if (r == 0)
                r = operation_begin(request, new_parent, &node, &to);
        if (r == 0 && (((flags & RENAME_WHITEOUT) != 0 && was_left(from.fd, name)) ||
                       ((flags & RENAME_EXCHANGE) != 0 && was_exchanged(from.fd, name)))) {
                operation_reply_error(request, 0);
                return;
        }
        if (r == 0 && (flags & RENAME_WHITEOUT) != 0) /* which is an inode; the request has its owner */
                r = operation_act_as_creator(request);
        if (r == 0 && (flags & (RENAME_EXCHANGE | RENAME_NOREPLACE)) == 0)
                nodes_let_go(to.fd, new_name);
        caches_name_goes();
        if (r == 0 && ATTEMPT(request, renameat2(from.fd, name, to.fd, new_name, flags)) < 0 &&
            !operation_done_before(errno, ENOENT))
                r = -errno;
        operation_reply_error(request, r);
        caches_name_goes();
}

void names_readlink(fuse_req_t request, fuse_ino_t number)
{
        cleanup_node_fd struct node_fd fd = NO_FD;
        char target[PATH_MAX + 1];
        struct node *node;
        ssize_t n = -1;
        int r = operation_begin(request, number, &node, &fd);

        if (r == 0 && (n = ATTEMPT(request, readlinkat(fd.fd, "", target, sizeof target - 1))) < 0)
                r = -errno;
        if (r < 0) {
                operation_reply_error(request, r);
                return;
        }
        target[n] = '\0';
        (void)fuse_reply_readlink(request, target);
}
