/* SPDX-License-Identifier: Apache-2.0 */
#include "mount/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "base/fd.h"
#include "base/syscalls.h"

/* A descriptor tells without the filesystem whether it is a directory's: one may not be searched then, and a file is none. */
static mode_t mode_of(int fd)
{
        cleanup_close int below_fd = openat(fd, ".", O_PATH | O_CLOEXEC);

        return below_fd < 0 && errno == ENOTDIR ? S_IFREG : S_IFDIR;
}

/*
 * A FUSE filesystem of another user namespace tells the node's root nothing but which mount it is (EACCES for
 * anything more: fuse_getattr(), seen on 6.18 and 6.1).
 */
static int see_foreign(int dirfd, const char *path, struct statx *ret_stx)
{
        cleanup_close int fd = path[0] != '\0' ? openat(dirfd, path, O_PATH | O_NOFOLLOW | O_CLOEXEC) : -EBADF;

        if (statx(dirfd, path, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC,
                  /* mask= */ 0, ret_stx) < 0)
                return -errno;
        ret_stx->stx_mode = (uint16_t)mode_of(path[0] != '\0' ? fd : dirfd);
        return 0;
}

#define ASKED (STATX_TYPE | STATX_INO | STATX_MNT_ID | STATX_MNT_ID_UNIQUE)
#define CAREFULLY (AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC)

static void put_seen(const struct statx *stx, struct mount_seen *ret_seen)
{
        *ret_seen = (struct mount_seen){
                .identity = { .unique = (stx->stx_mask & STATX_MNT_ID_UNIQUE) != 0,
                              .id = stx->stx_mnt_id,
                              .device = makedev(stx->stx_dev_major, stx->stx_dev_minor) },
                .root = (stx->stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0,
                .directory = S_ISDIR(stx->stx_mode),
                .device = makedev(stx->stx_dev_major, stx->stx_dev_minor),
        };
        if (!ret_seen->identity.unique) {
                ret_seen->identity.short_id = ret_seen->identity.id;
                ret_seen->identity.inode = stx->stx_ino;
        }
}

#ifndef AT_HANDLE_MNT_ID_UNIQUE /* Linux 6.12 */
#define AT_HANDLE_MNT_ID_UNIQUE 0x001
#endif
#define INODE_OF_64_BITS 0x81 /* the type of such handles of xfs; else it has 32 */

/* The root of a mount has another mount above it. A file, and a directory that may not be searched, do not tell,
 * and count as one: who asks of a file looks whether the mount is above it. */
static bool is_root(int fd, uint64_t id)
{
        cleanup_close int up_fd = openat(fd, "..", O_PATH | O_CLOEXEC);
        struct statx up;

        if (up_fd < 0)
                return errno == ENOTDIR || errno == EACCES || errno == EIO;
        return statx(up_fd, "", AT_EMPTY_PATH | CAREFULLY, ASKED, &up) == 0 && up.stx_mnt_id != id;
}

/* Gives: which mount a file is on, and its inode, by its handle. */
static int ask_handle(int fd, struct statx *ret_stx)
{
        struct {
                struct file_handle head;
                uint32_t words[8];
        } handle = { .head = { .handle_bytes = sizeof handle.words } };
        uint64_t id = 0;
        int short_id;

        *ret_stx = (struct statx){ .stx_mode = (uint16_t)mode_of(fd) };
        if (name_to_handle_at(fd, "", &handle.head, (int *)(void *)&id, AT_EMPTY_PATH | AT_HANDLE_MNT_ID_UNIQUE) == 0) {
                ret_stx->stx_mask = STATX_MNT_ID_UNIQUE;
                ret_stx->stx_mnt_id = id;
        } else if (name_to_handle_at(fd, "", &handle.head, &short_id, AT_EMPTY_PATH) == 0)
                ret_stx->stx_mnt_id = (uint64_t)short_id;
        else
                return -errno;
        ret_stx->stx_ino = handle.words[0];
        if (handle.head.handle_type == INODE_OF_64_BITS)
                ret_stx->stx_ino |= (uint64_t)handle.words[1] << 32;
        return 0;
}

/*
 * An xfs that has shut down after an error tells nothing of its files, not even which mount they are on (EIO, seen on 6.18):
 * the kernel gives that with a file's handle, and xfs its device with statfs(2).
 */
static int see_shut_down(int dirfd, const char *path, struct statx *ret_stx)
{
        cleanup_close int own_fd = path[0] != '\0' ? openat(dirfd, path, O_PATH | O_NOFOLLOW | O_CLOEXEC) : -EBADF;
        const int fd = path[0] != '\0' ? own_fd : dirfd;
        struct statfs fs;
        uint32_t device;

        if (fstatfs(fd, &fs) < 0 || fs.f_type != XFS_SUPER_MAGIC || ask_handle(fd, ret_stx) < 0)
                return -EIO;
        device = (uint32_t)fs.f_fsid.__val[0];
        ret_stx->stx_dev_major = device >> 8 & 0xfff;
        ret_stx->stx_dev_minor = (device & 0xff) | (device >> 12 & 0xfff00);
        if (is_root(fd, ret_stx->stx_mnt_id))
                ret_stx->stx_attributes = STATX_ATTR_MOUNT_ROOT;
        return 0;
}

int mount_see(int dirfd, const char *path, struct mount_seen *ret_seen)
{
        struct statx stx;

        if (statx(dirfd, path, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW | CAREFULLY, ASKED, &stx) < 0) {
                int r = errno == EACCES ? see_foreign(dirfd, path, &stx)
                        : errno == EIO  ? see_shut_down(dirfd, path, &stx)
                                        : -errno;

                if (r < 0)
                        return r;
        }
        put_seen(&stx, ret_seen);
        return 0;
}

int mount_see_link(int dirfd, const char *path, struct mount_seen *ret_seen)
{
        struct statx stx;
        int r = statx(dirfd, path, CAREFULLY, ASKED, &stx);

        if (r < 0 && errno == EACCES) /* see_foreign() */
                r = statx(dirfd, path, CAREFULLY, /* mask= */ 0, &stx);
        if (r < 0)
                return -errno;
        put_seen(&stx, ret_seen);
        return 0;
}

int mount_see_short_id(int fd, uint64_t *ret_short_id)
{
        struct statx stx;

        /* it comes without being asked for */
        if (statx(fd, "", AT_EMPTY_PATH | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC, /* mask= */ 0, &stx) < 0)
                return -errno;
        *ret_short_id = stx.stx_mnt_id;
        return 0;
}

int mount_identity_is_in(const struct mount_identity *identity, uint64_t mnt_ns_id)
{
        const struct mnt_id_request request = { .size = sizeof request,
                                                .mnt_id = identity->id,
                                                .mnt_ns_id = mnt_ns_id };
        uint64_t answer[64]; /* a struct statmount, of which nothing was asked but whether there is one */

        if (!identity->unique)
                return -ENOSYS;
        if (sys_statmount(&request, answer, sizeof answer) == 0)
                return 1;
        return errno == ENOENT ? 0 : -errno;
}

bool mount_identity_same(const struct mount_identity *one, const struct mount_identity *other)
{
        if (one->unique != other->unique || one->id != other->id)
                return false;
        return one->unique || (one->device == other->device && one->inode == other->inode);
}

bool mount_seen_is(const struct mount_seen *seen, const struct mount_identity *identity)
{
        return seen->root && mount_identity_same(&seen->identity, identity);
}
