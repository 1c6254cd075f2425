/* SPDX-License-Identifier: Apache-2.0 */
#include "attributes.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "caches.h"
#include "newer.h"
#include "operation.h"
#include "request.h"
#include "source_ids.h"

/* Answer with the attributes of a node's file, which were set or asked for; if r is negative, with that error. */
static void reply_attributes(fuse_req_t request, int r, struct node *node, int fd, bool set)
{
        struct stat st;
        bool answered;

        if (r == 0 && fstatat(fd, "", &st, AT_EMPTY_PATH) < 0)
                r = -errno;
        if (r != 0) {
                operation_reply_error(request, r);
                return;
        }
        if (set)
                caches_set_owner(node, &st);
        caches_tell(node, fuse_req_ctx(request)->pid, &st);
        st.st_ino = nodes_shown_inode(st.st_dev, st.st_ino);
        source_ids_show(&st.st_uid, &st.st_gid);
        answered = fuse_reply_attr(request, &st, operation_cached_seconds(node)) == 0;
        if (set)
                caches_owner_was_set(node, answered);
}

static struct newer_time newer_time(const struct statx_timestamp *time)
{
        return (struct newer_time){ .seconds = time->tv_sec, .nanoseconds = time->tv_nsec };
}

static struct timespec plain_time(const struct statx_timestamp *time)
{
        return (struct timespec){ .tv_sec = time->tv_sec, .tv_nsec = time->tv_nsec };
}

/* What caches_tell() notes. */
static struct stat plain_stat(const struct statx *st)
{
        return (struct stat){ .st_mode = st->stx_mode,
                              .st_uid = st->stx_uid,
                              .st_gid = st->stx_gid,
                              .st_size = (off_t)st->stx_size,
                              .st_mtim = plain_time(&st->stx_mtime),
                              .st_ctim = plain_time(&st->stx_ctime) };
}

/* The same with the time of birth, if the filesystem has that: all that the kernel asks for, and caches. */
static void reply_more_attributes(fuse_req_t request, int r, struct node *node, int fd)
{
        struct newer_statx answer = {};
        struct stat plain;
        struct statx st;

        if (r == 0 && statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &st) < 0)
                r = -errno;
        if (r != 0) {
                operation_reply_error(request, r);
                return;
        }
        answer.valid = (uint64_t)operation_cached_seconds(node);
        answer.mask = STATX_BASIC_STATS | (st.stx_mask & STATX_BTIME);
        answer.block_size = st.stx_blksize;
        answer.links = st.stx_nlink;
        answer.uid = st.stx_uid;
        answer.gid = st.stx_gid;
        answer.mode = st.stx_mode;
        answer.inode = nodes_shown_inode(makedev(st.stx_dev_major, st.stx_dev_minor), st.stx_ino);
        answer.size = st.stx_size;
        answer.blocks = st.stx_blocks;
        answer.accessed = newer_time(&st.stx_atime);
        answer.born = newer_time(&st.stx_btime);
        answer.changed = newer_time(&st.stx_ctime);
        answer.modified = newer_time(&st.stx_mtime);
        answer.special_major = st.stx_rdev_major;
        answer.special_minor = st.stx_rdev_minor;
        plain = plain_stat(&st);
        caches_tell(node, fuse_req_ctx(request)->pid, &plain);
        source_ids_show(&answer.uid, &answer.gid);
        (void)fuse_reply_buf(request, (const char *)&answer, sizeof answer);
}

/* FUSE_GETATTR and FUSE_STATX. */
void attributes_get(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *file)
{
        cleanup_node_fd struct node_fd fd = NO_FD;
        struct node *node;
        int r = operation_begin(request, number, &node, &fd);

        (void)file;
        if (request_current()->opcode == NEWER_STATX)
                reply_more_attributes(request, r, node, fd.fd);
        else
                reply_attributes(request, r, node, fd.fd, /* set= */ false);
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

/* Whether only the owner may set these, and root, who must not take files of owners that its container does not have. */
static bool is_of_owner(int what)
{
        return (what & (FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)) != 0 ||
               (what & (FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_ATIME_NOW)) == FUSE_SET_ATTR_ATIME ||
               (what & (FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_MTIME_NOW)) == FUSE_SET_ATTR_MTIME;
}

#define ANY_ATTRIBUTE                                                                                                  \
        (FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID | FUSE_SET_ATTR_SIZE | FUSE_SET_ATTR_ATIME |       \
         FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_ATIME_NOW | FUSE_SET_ATTR_MTIME_NOW)

/*
 * chown(2) that names no owner, which takes the set-id bits and file capabilities all the same. The kernel asks for the same before
 * any write that takes them, which does so itself, whoever writes: so it is no error that the caller may not. Where the kernel alone
 * checks, it has not checked that, and who asks is not known.
 */
static void take_set_id(fuse_req_t request, struct node *node, int fd)
{
        if (shared->checked)
                return;
        operation_keep_locking(request, node, fd);
        if (operation_has_owner(request, node, fd, RIGHTS_OF_OWNER) == 0)
                (void)ATTEMPT(request, fchownat(fd, "", (uid_t)-1, (gid_t)-1, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW));
}

static int set_attributes(fuse_req_t request, struct node *node, int fd, const struct stat *st, int what,
                          const struct fuse_file_info *file)
{
        struct link_path path = operation_path(fd);
        int r = is_of_owner(what) ? operation_has_owner(request, node, fd, RIGHTS_OF_OWNER) : 0;

        if (r < 0)
                return r;
        if ((what & ANY_ATTRIBUTE) == 0)
                take_set_id(request, node, fd);
        if ((what & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID | FUSE_SET_ATTR_SIZE)) != 0)
                operation_keep_locking(request, node, fd);
        if ((what & FUSE_SET_ATTR_MODE) != 0) {
                if ((st->st_mode & S_ISGID) != 0)
                        operation_keep_setgid(request, fd);
                if (ATTEMPT(request, fchmodat(AT_FDCWD, path.text, st->st_mode & 07777, 0)) < 0)
                        return -errno;
        }
        if ((what & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)) != 0) {
                uid_t uid = (what & FUSE_SET_ATTR_UID) != 0 ? st->st_uid : (uid_t)-1;
                gid_t gid = (what & FUSE_SET_ATTR_GID) != 0 ? st->st_gid : (gid_t)-1;

                if (((what & FUSE_SET_ATTR_UID) != 0 && !source_ids_take_user(&uid)) ||
                    ((what & FUSE_SET_ATTR_GID) != 0 && !source_ids_take_group(&gid)))
                        return -EOVERFLOW;
                if (ATTEMPT(request, fchownat(fd, "", uid, gid, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW)) < 0)
                        return -errno;
        }
        if ((what & FUSE_SET_ATTR_SIZE) != 0) {
                r = file != NULL ? ftruncate((int)file->fh, st->st_size)
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

void attributes_set(fuse_req_t request, fuse_ino_t number, struct stat *st, int what, struct fuse_file_info *file)
{
        cleanup_node_fd struct node_fd fd = NO_FD;
        struct node *node;
        int r = operation_begin(request, number, &node, &fd);

        if (r == 0)
                r = set_attributes(request, node, fd.fd, st, what, file);
        reply_attributes(request, r, node, fd.fd, /* set= */ true);
}

void attributes_statfs(fuse_req_t request, fuse_ino_t number)
{
        cleanup_node_fd struct node_fd fd = NO_FD;
        struct statvfs answer;
        struct node *node;
        int r = operation_begin(request, number, &node, &fd);

        if (r == 0 && fstatvfs(fd.fd, &answer) < 0)
                r = -errno;
        if (r < 0)
                operation_reply_error(request, r);
        else
                (void)fuse_reply_statfs(request, &answer);
}
