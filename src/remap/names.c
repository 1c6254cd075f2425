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
        for (size_t i = 0; i < count; i++) {
                /* in the request's buffer, and before it is done: what the next daemon finds there it forgets */
                const uint64_t lookups = __atomic_exchange_n(&forgets[i].nlookup, 0, __ATOMIC_SEQ_CST);

                if (lookups > 0)
                        forget(forgets[i].ino, lookups);
        }
        fuse_reply_none(request);
}

/* Whether that name is of such a type, and its owner whom the caller's inodes have: an earlier daemon may have made it. */
static bool is_callers(int directory_fd, const char *name, mode_t mode)
{
        struct stat st;

        return fstatat(directory_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && (st.st_mode & S_IFMT) == (mode & S_IFMT) &&
               (shared->network || st.st_uid == caller_uid());
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
                                                   : mknodat(fd.fd, name, mode, 0)) < 0) {
                        r = -errno;
                        if (operation_done_before(-r, EEXIST) && is_callers(fd.fd, name, mode))
                                r = 0;
                }
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

/* Whether that name is a link to that target, as an earlier daemon may have made it. */
static bool is_link_to(int directory_fd, const char *name, const char *target)
{
        char found[PATH_MAX + 1];
        const ssize_t n = readlinkat(directory_fd, name, found, sizeof found);

        return n >= 0 && (size_t)n == strlen(target) && memcmp(found, target, (size_t)n) == 0;
}

void names_symlink(fuse_req_t request, const char *target, fuse_ino_t parent, const char *name)
{
        cleanup_node_fd struct node_fd fd = NO_FD;
        struct node *node;
        int r = operation_begin(request, parent, &node, &fd);

        if (r == 0)
                r = operation_act_as_creator(request);
        if (r == 0 && ATTEMPT(request, symlinkat(target, fd.fd, name)) < 0) {
                r = -errno;
                if (operation_done_before(-r, EEXIST) && is_link_to(fd.fd, name, target))
                        r = 0;
        }
        operation_reply_entry(request, r, parent, fd.fd, name);
}

/* Whether that name is that file's. */
static bool is_name_of(int directory_fd, const char *name, int fd)
{
        struct stat file;
        struct stat st;

        return fstatat(fd, "", &file, AT_EMPTY_PATH) == 0 &&
               fstatat(directory_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_dev == file.st_dev &&
               st.st_ino == file.st_ino;
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
            ATTEMPT(request, linkat(AT_FDCWD, operation_path(fd.fd).text, directory.fd, name, AT_SYMLINK_FOLLOW)) < 0) {
                r = -errno;
                if (operation_done_before(-r, EEXIST) && is_name_of(directory.fd, name, fd.fd))
                        r = 0;
        }
        operation_reply_entry(request, r, parent, directory.fd, name);
}

/*
 * Whether an earlier daemon has done already what takes a name away: there is none any more, or it is another file's by now.
 * Else record which file it is. Its inode number is no other's meanwhile, where the node holds it.
 */
static bool has_gone(fuse_req_t request, int directory_fd, const char *name)
{
        struct stat st;

        if (ATTEMPT(request, fstatat(directory_fd, name, &st, AT_SYMLINK_NOFOLLOW)) < 0)
                return errno == ENOENT && request_noted(); /* else as the call will */
        if (request_noted_another(&st))
                return true;
        request_note_file(&st);
        return false;
}

static void remove_name(fuse_req_t request, fuse_ino_t parent, const char *name, int flags)
{
        cleanup_node_fd struct node_fd fd = NO_FD;
        struct node *node;
        int r = operation_begin(request, parent, &node, &fd);

        caches_name_goes();
        if (r == 0 && !has_gone(request, fd.fd, name)) {
                if ((flags & AT_REMOVEDIR) == 0)
                        nodes_let_go(fd.fd, name);
                if (ATTEMPT(request, unlinkat(fd.fd, name, flags)) < 0)
                        r = -errno;
        }
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

/*
 * Likewise of a rename: then the file has the new name, and the former one is the other file's (RENAME_EXCHANGE), a whiteout,
 * or what others have made. If it has not, others were first, and it is theirs that is renamed.
 */
static bool was_renamed(fuse_req_t request, int from_fd, const char *name, int to_fd, const char *new_name)
{
        struct stat from;
        struct stat to;

        if (ATTEMPT(request, fstatat(from_fd, name, &from, AT_SYMLINK_NOFOLLOW)) < 0)
                return errno == ENOENT && request_noted(); /* else as the call will */
        if (request_noted_another(&from) && ATTEMPT(request, fstatat(to_fd, new_name, &to, AT_SYMLINK_NOFOLLOW)) == 0 &&
            !request_noted_another(&to))
                return true;
        request_note_file(&from);
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
        caches_name_goes();
        if (r == 0 && was_renamed(request, from.fd, name, to.fd, new_name)) {
                operation_reply_error(request, 0);
                caches_name_goes();
                return;
        }
        if (r == 0 && (flags & RENAME_WHITEOUT) != 0) /* which is an inode; the request has its owner */
                r = operation_act_as_creator(request);
        if (r == 0 && (flags & (RENAME_EXCHANGE | RENAME_NOREPLACE)) == 0)
                nodes_let_go(to.fd, new_name);
        if (r == 0 && ATTEMPT(request, renameat2(from.fd, name, to.fd, new_name, flags)) < 0)
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
