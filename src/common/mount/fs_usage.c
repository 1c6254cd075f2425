/* SPDX-License-Identifier: Apache-2.0 */
#include "mount/fs_usage.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/stat.h>

/*
 * A filesystem may say what it likes, a FUSE filesystem of a container's among them: more than fits is the most that
 * fits, and no more is free than all.
 */
static uint64_t bytes_of(uint64_t blocks, uint64_t size)
{
        uint64_t bytes;

        return __builtin_mul_overflow(blocks, size, &bytes) ? UINT64_MAX : bytes;
}

int fs_usage_ask(int fd, struct statfs *ret_fs)
{
        struct statx stx;

        if (fstatfs(fd, ret_fs) < 0)
                return -errno;
        return ret_fs->f_type == XFS_SUPER_MAGIC &&
                               statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, /* mask= */ 0, &stx) < 0 &&
                               errno == EIO
                       ? -EIO
                       : 0;
}

void fs_usage_of(const struct statfs *fs, struct fs_usage *ret_usage)
{
        const uint64_t blocks_free = fs->f_bfree < fs->f_blocks ? fs->f_bfree : fs->f_blocks;

        *ret_usage = (struct fs_usage){ .known = fs->f_blocks > 0,
                                        .size_bytes = bytes_of(fs->f_blocks, (uint64_t)fs->f_bsize),
                                        .free_bytes = bytes_of(blocks_free, (uint64_t)fs->f_bsize),
                                        .available_bytes = bytes_of(fs->f_bavail, (uint64_t)fs->f_bsize),
                                        .files = (uint64_t)fs->f_files,
                                        .files_free = (uint64_t)fs->f_ffree };
}

/* Names as node_exporter has them for the node's own filesystems. */
static const struct number {
        const char *name;
        const char *help;
        size_t offset;
        bool of_files;
} numbers[] = {
        { "size_bytes", "Size of the filesystem, in bytes.", offsetof(struct fs_usage, size_bytes), false },
        { "free_bytes", "Free room of the filesystem, in bytes.", offsetof(struct fs_usage, free_bytes), false },
        { "avail_bytes", "Free room for other users than root, in bytes.", offsetof(struct fs_usage, available_bytes),
          false },
        { "files", "Inodes of the filesystem.", offsetof(struct fs_usage, files), true },
        { "files_free", "Free inodes of the filesystem.", offsetof(struct fs_usage, files_free), true },
};

void fs_usage_put(struct metrics_text *text, const char *prefix, const void *things, size_t count, fs_usage_find *find,
                  fs_usage_label *label)
{
        for (size_t n = 0; n < sizeof numbers / sizeof numbers[0]; n++) {
                char name[128];

                (void)snprintf(name, sizeof name, "%s_filesystem_%s", prefix, numbers[n].name);
                metrics_family(text, name, "gauge", numbers[n].help);
                for (size_t i = 0; i < count; i++) {
                        const struct fs_usage *usage = find(things, i);

                        if (!usage->known || (numbers[n].of_files && usage->files == 0))
                                continue;
                        metrics_sample(text, name);
                        label(text, things, i);
                        metrics_value(text, *(const uint64_t *)(const void *)((const char *)usage + numbers[n].offset));
                }
        }
}

void fs_lost_add(struct fs_lost *lost, uint64_t device)
{
        if (device != 0 && lost->count < sizeof lost->devices / sizeof lost->devices[0])
                lost->devices[lost->count++] = device;
}

bool fs_lost_has(const struct fs_lost *lost, uint64_t device)
{
        for (size_t i = 0; i < lost->count; i++)
                if (lost->devices[i] == device)
                        return true;
        return false;
}
