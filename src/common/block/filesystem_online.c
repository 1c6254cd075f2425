/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filesystem_online.c - a filesystem that is mounted, asked through any directory of it.
 *
 * resize2fs and xfs_growfs look for the mount in the list of their own namespace, where that of a container is not: the
 * kernel is asked as they ask it.
 */
#include <errno.h>
#include <linux/btrfs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/vfs.h>

#include "base/text.h"
#include "block/filesystem.h"
#include "process/log.h"

#define EXT4_RESIZE _IOW('f', 16, uint64_t) /* EXT4_IOC_RESIZE_FS: blocks */

#define BTRFS_LEAST_BYTES ((uint64_t)256 << 20)

/* As xfs/xfs_fs.h of xfsprogs has them. */
struct xfs_geometry {
        uint32_t block_size;
        uint32_t before_inodes[6];
        uint32_t inodes_percent;
        uint64_t data_blocks;
        uint64_t more[9];
};
struct xfs_growth {
        uint64_t data_blocks;
        uint32_t inodes_percent;
};
#define XFS_GEOMETRY _IOR('X', 100, struct xfs_geometry) /* XFS_IOC_FSGEOMETRY_V1 */
#define XFS_GROW _IOW('X', 110, struct xfs_growth)       /* XFS_IOC_FSGROWFSDATA */
_Static_assert(sizeof(struct xfs_geometry) == 112 && sizeof(struct xfs_growth) == 16, "the kernel's");

static int grow_ext4(int fd, uint64_t device_bytes)
{
        struct statfs fs;
        uint64_t blocks;

        if (fstatfs(fd, &fs) < 0)
                return -errno;
        blocks = device_bytes / (uint64_t)fs.f_bsize;
        return ioctl(fd, EXT4_RESIZE, &blocks) < 0 ? -errno : 0;
}

static int grow_xfs(int fd, uint64_t device_bytes)
{
        struct xfs_geometry geometry;
        struct xfs_growth growth;

        if (ioctl(fd, XFS_GEOMETRY, &geometry) < 0)
                return -errno;
        growth = (struct xfs_growth){ .data_blocks = device_bytes / geometry.block_size,
                                      .inodes_percent = geometry.inodes_percent };
        if (growth.data_blocks <= geometry.data_blocks)
                return 0;
        return ioctl(fd, XFS_GROW, &growth) < 0 ? -errno : 0;
}

static int grow_btrfs(int fd, uint64_t device_bytes)
{
        struct btrfs_ioctl_vol_args arguments = { .name = "max" };

        (void)device_bytes;
        return ioctl(fd, BTRFS_IOC_RESIZE, &arguments) < 0 ? -errno : 0;
}

static const struct {
        const char *type;
        int (*grow)(int fd, uint64_t device_bytes);
} filesystems[] = { { "ext4", grow_ext4 },
                    { "ext3", grow_ext4 },
                    { "ext2", grow_ext4 },
                    { "xfs", grow_xfs },
                    { "btrfs", grow_btrfs } };

int filesystem_grow_mounted(const struct block_device *device, const char *type, int dir_fd, struct error *error)
{
        uint64_t size_bytes;
        int r = block_device_size(device, &size_bytes, error);

        if (r < 0)
                return r;
        for (size_t i = 0; i < sizeof filesystems / sizeof filesystems[0]; i++)
                if (strcmp(filesystems[i].type, type) == 0) {
                        r = filesystems[i].grow(dir_fd, size_bytes);
                        if (r == -EPERM && text_starts(type, "ext"))
                                return fail_because(error, EPERM, "grow filesystem", device->path,
                                                    "to grow an %s root needs the capability SYS_RESOURCE, and "
                                                    "a filesystem that mke2fs made with room to grow",
                                                    type);
                        if (r == -EINVAL && strcmp(type, "btrfs") == 0 && size_bytes < BTRFS_LEAST_BYTES)
                                return fail_because(error, EINVAL, "grow filesystem", device->path,
                                                    "a btrfs grows to 256 MiB at least, and its device has %llu bytes",
                                                    (unsigned long long)size_bytes);
                        if (r == 0)
                                log_say("grew the filesystem on %s", device->path);
                        return r < 0 ? fail(error, -r, "grow filesystem", device->path) : 0;
                }
        return fail_because(error, EOPNOTSUPP, "grow filesystem", device->path,
                            "a filesystem of type %s cannot be grown here", type);
}
