/* SPDX-License-Identifier: Apache-2.0 */
#include "block/filesystem.h"

#include <errno.h>
#include <linux/btrfs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/vfs.h>

#include "base/text.h"
#include "block/fs_tools.h"
#include "process/log.h"

#define DEFAULT_TYPE "ext4"
#define SMALL_BYTES ((uint64_t)1 << 30) /* for xfs */
#define FSCK_CORRECTED 1                /* fsck(8)'s exit status, bit by bit */
#define FSCK_UNCORRECTED 4

static const struct {
        const char *type;
        enum fs_tool make;
        enum fs_tool grow;
        bool repaired; /* by e2fsck */
        bool grown_by_directory;
        uint64_t minimum_bytes; /* that mkfs accepts: xfsprogs 5.19 and later; btrfs-progs 6.2; 0: it says itself */
        need_set needs;         /* what the node must have to make and mount it, as host-check says */
} filesystems[] = {
        { "ext4", TOOL_MKFS_EXT4, TOOL_RESIZE2FS, true, false, 0, NEED(EXT4) | NEED(MKFS_EXT4) },
        { "ext3", TOOLS, TOOL_RESIZE2FS, true, false, 0, NEED(EXT4) },
        { "ext2", TOOLS, TOOL_RESIZE2FS, true, false, 0, NEED(EXT4) },
        { "xfs", TOOL_MKFS_XFS, TOOL_XFS_GROWFS, false, true, (uint64_t)300 << 20, NEED(XFS) | NEED(MKFS_XFS) },
        { "btrfs", TOOL_MKFS_BTRFS, TOOL_BTRFS_GROW, false, true, (uint64_t)109 << 20, NEED(BTRFS) | NEED(MKFS_BTRFS) },
};
#define FILESYSTEMS (sizeof filesystems / sizeof filesystems[0])

static size_t index_of(const char *type)
{
        size_t i = 0;

        while (i < FILESYSTEMS && strcmp(filesystems[i].type, type) != 0)
                i++;
        return i;
}

need_set filesystem_needs(const char *type)
{
        size_t i = index_of(type[0] != '\0' ? type : DEFAULT_TYPE);

        return i < FILESYSTEMS ? filesystems[i].needs : 0;
}

uint64_t filesystem_minimum_bytes(const char *type)
{
        size_t i = index_of(type);

        return i < FILESYSTEMS ? filesystems[i].minimum_bytes : 0;
}

int filesystem_check_size(const char *type, uint64_t size_bytes, const char *volume, struct error *error)
{
        uint64_t minimum_bytes = filesystem_minimum_bytes(type);

        if (size_bytes >= minimum_bytes)
                return 0;
        return fail_because(error, EINVAL, "make filesystem", volume,
                            "a filesystem of type %s needs at least %llu MiB, and this is of %llu bytes", type,
                            (unsigned long long)(minimum_bytes >> 20), (unsigned long long)size_bytes);
}

int filesystem_check_type(const char *type, const char *volume, const char *why, struct error *error)
{
        size_t i = index_of(type[0] != '\0' ? type : DEFAULT_TYPE);

        if (i < FILESYSTEMS && filesystems[i].make != TOOLS)
                return 0;
        return fail_because(error, EINVAL, "find filesystem", volume,
                            "%s%s cannot be created here, only ext4, xfs and btrfs", why, type);
}

int filesystem_choose(const struct block_device *device, const char *asked, char *ret_type, struct error *error)
{
        (void)text_copy(ret_type, FILESYSTEM_TYPE_SIZE, asked[0] != '\0' ? asked : DEFAULT_TYPE);
        return filesystem_check_type(ret_type, device->path, "the device is blank, and ", error);
}

int filesystem_find(const struct block_device *device, const char *asked, char *ret_type, struct error *error)
{
        char what[FILESYSTEM_TYPE_SIZE];
        int r = block_device_is_blank(device, what, error); /* most often blank: one probe is enough */

        if (r < 0)
                return r;
        if (r > 0)
                return filesystem_choose(device, asked, ret_type, error);
        r = block_device_fs_type(device, ret_type, error);
        /* the ext4 driver mounts ext2 and ext3, too */
        if (r == 0 && (asked[0] == '\0' || strcmp(asked, ret_type) == 0 ||
                       (text_starts(asked, "ext") && text_starts(ret_type, "ext"))))
                return 1;
        if (r == 0)
                return fail_because(error, EINVAL, "find filesystem", device->path,
                                    "the device holds a filesystem of type %s, and %s was requested", ret_type, asked);
        if (r != -ENODATA)
                return r;
        return fail_because(error, ENODATA, "find filesystem", device->path,
                            "the device is not blank and holds no filesystem but %s: it is not formatted",
                            what[0] != '\0' ? what : "unknown data");
}

static int make(enum fs_tool tool, const struct block_device *device, const char *type, bool keep_blocks,
                unsigned timeout_seconds, struct error *error)
{
        char output[TOOL_OUTPUT_SIZE];
        uint64_t size_bytes;
        int r = block_device_size(device, &size_bytes, error);

        if (r < 0 || (r = filesystem_check_size(type, size_bytes, device->path, error)) < 0)
                return r;
        r = fs_tool_run(tool, device->path, keep_blocks, timeout_seconds, output, error);

        if (r > 0)
                return fail_because(error, EIO, "make filesystem", device->path, "mkfs.%s failed (%d): %s", type, r,
                                    output);
        if (r == 0)
                log_say("made a filesystem of type %s on %s", type, device->path);
        return r;
}

int filesystem_make(const struct block_device *device, const char *type, bool keep_blocks, unsigned timeout_seconds,
                    struct error *error)
{
        /* filesystem_find() gave the type */
        return make(filesystems[index_of(type)].make, device, type, keep_blocks, timeout_seconds, error);
}

int filesystem_make_direct(const struct block_device *device, const char *type, unsigned timeout_seconds,
                           struct error *error)
{
        enum fs_tool tool = filesystems[index_of(type)].make;
        uint64_t size_bytes;
        int r = block_device_size(device, &size_bytes, error);

        if (r < 0)
                return r;
        if (tool == TOOL_MKFS_EXT4)
                tool = TOOL_MKFS_EXT4_DIRECT;
        else if (tool == TOOL_MKFS_XFS)
                tool = size_bytes < SMALL_BYTES ? TOOL_MKFS_XFS_SMALL_DIRECT : TOOL_MKFS_XFS_DIRECT;
        return make(tool, device, type, /* keep_blocks= */ false, timeout_seconds, error);
}

int filesystem_unmake(const struct block_device *device, bool same_device, struct error *error)
{
        char what[FILESYSTEM_TYPE_SIZE];
        int r = block_device_is_blank(device, what, error);

        if (r != 0)
                return r < 0 ? r : 0;
        r = block_device_is_unfinished(device, error);
        if (r < 0)
                return r;
        if (r == 0 && (!same_device || what[0] != '\0')) {
                log_say("mkfs was interrupted, but %s holds %s: not changed", device->path,
                        what[0] != '\0' ? what : "unknown data");
                return 0;
        }
        log_say("mkfs on %s was interrupted: made blank again", device->path);
        return block_device_wipe(device, error);
}

int filesystem_repair(const struct block_device *device, const char *type, unsigned timeout_seconds,
                      struct error *error)
{
        size_t i = index_of(type);
        char output[TOOL_OUTPUT_SIZE];
        int r;

        if (i == FILESYSTEMS || !filesystems[i].repaired)
                return 0;
        r = fs_tool_run(TOOL_E2FSCK, device->path, false, timeout_seconds, output, error);
        if (r == -ENOENT) {
                log_say("e2fsck is not installed: %s is mounted unchecked", device->path);
                return 0;
        }
        if (r > 0 && (r & FSCK_UNCORRECTED) != 0)
                return fail_because(error, EUCLEAN, "check filesystem", device->path,
                                    "e2fsck found errors that it does not repair without asking: %s", output);
        if (r > 0)
                log_say("e2fsck of %s: exit status %d%s: %s", device->path, r,
                        (r & FSCK_CORRECTED) != 0 ? ", repaired" : "", output);
        return r < 0 ? r : 0; /* other bits: e2fsck could not check, and the mount will fail if need be */
}

int filesystem_mend(const struct block_device *device, const char *type, unsigned timeout_seconds, struct error *error)
{
        char output[TOOL_OUTPUT_SIZE];
        size_t i = index_of(type);
        int r;

        if (i == FILESYSTEMS || !filesystems[i].repaired)
                return fail(error, EBADMSG, "check filesystem", device->path);
        r = fs_tool_run(TOOL_DEBUGFS_DIRTY, device->path, false, timeout_seconds, output, error);
        if (r != 0)
                return r < 0 ? r
                             : fail_because(error, EBADMSG, "check filesystem", device->path, "debugfs: %s", output);
        log_say("the checksum of the superblock on %s was wrong: checking the whole filesystem", device->path);
        return filesystem_repair(device, type, timeout_seconds, error);
}

int filesystem_grow(const struct block_device *device, const char *type, const char *dir, unsigned timeout_seconds,
                    struct error *error)
{
        size_t i = index_of(type);
        char output[TOOL_OUTPUT_SIZE];
        int r;

        if (i == FILESYSTEMS)
                return fail_because(error, EOPNOTSUPP, "grow filesystem", device->path,
                                    "a filesystem of type %s cannot be grown here", type);
        r = fs_tool_run(filesystems[i].grow, filesystems[i].grown_by_directory ? dir : device->path, false,
                        timeout_seconds, output, error);
        if (r > 0)
                return fail_because(error, EIO, "grow filesystem", device->path, "growing it failed (%d): %s", r,
                                    output);
        if (r == 0)
                log_say("grew the filesystem on %s", device->path);
        return r;
}

/*
 * ---- a filesystem that is mounted, asked through any directory of it.
 *
 * resize2fs and xfs_growfs look for the mount in the list of their own namespace, where that of a container is not: the
 * kernel is asked as they ask it.
 */

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
} growing[] = { { "ext4", grow_ext4 },
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
        for (size_t i = 0; i < sizeof growing / sizeof growing[0]; i++)
                if (strcmp(growing[i].type, type) == 0) {
                        r = growing[i].grow(dir_fd, size_bytes);
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
