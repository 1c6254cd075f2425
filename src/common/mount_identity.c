/* SPDX-License-Identifier: Apache-2.0 */
#include "mount_identity.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "syscalls.h"

int mount_see(int dirfd, const char *path, struct mount_seen *ret_seen)
{
        struct statx stx;

        if (statx(dirfd, path, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC,
                  STATX_TYPE | STATX_INO | STATX_MNT_ID | STATX_MNT_ID_UNIQUE, &stx) < 0)
                return -errno;
        *ret_seen = (struct mount_seen){
                .identity = { .unique = (stx.stx_mask & STATX_MNT_ID_UNIQUE) != 0,
                              .id = stx.stx_mnt_id,
                              .device = makedev(stx.stx_dev_major, stx.stx_dev_minor) },
                .root = (stx.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0,
                .directory = S_ISDIR(stx.stx_mode),
                .device = makedev(stx.stx_dev_major, stx.stx_dev_minor),
        };
        if (!ret_seen->identity.unique) {
                ret_seen->identity.short_id = ret_seen->identity.id;
                ret_seen->identity.inode = stx.stx_ino;
        }
        return 0;
}

int mount_see_short_id(int fd, uint64_t *ret_short_id)
{
        struct statx stx;

        if (statx(fd, "", AT_EMPTY_PATH | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC, STATX_MNT_ID, &stx) < 0)
                return -errno;
        *ret_short_id = stx.stx_mnt_id;
        return 0;
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
