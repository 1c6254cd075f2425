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
                .identity = { .unique = (stx.stx_mask & STATX_MNT_ID_UNIQUE) != 0, .id = stx.stx_mnt_id },
                .root = (stx.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0,
                .directory = S_ISDIR(stx.stx_mode),
                .device = makedev(stx.stx_dev_major, stx.stx_dev_minor),
        };
        if (!ret_seen->identity.unique) {
                ret_seen->identity.device = ret_seen->device;
                ret_seen->identity.inode = stx.stx_ino;
        }
        return 0;
}

bool mount_identity_same(const struct mount_identity *one, const struct mount_identity *other)
{
        return one->unique == other->unique && one->id == other->id && one->device == other->device &&
               one->inode == other->inode;
}
