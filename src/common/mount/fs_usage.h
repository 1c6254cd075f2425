/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fs_usage.h - how full the filesystem of a mount is, and that as metrics.
 */
#ifndef FLEXGRAFT_MOUNT_FS_USAGE_H
#define FLEXGRAFT_MOUNT_FS_USAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/vfs.h>

#include "base/metrics_text.h"

struct fs_usage {
        bool known;
        uint64_t size_bytes;
        uint64_t free_bytes;
        uint64_t available_bytes; /* to other users than root */
        uint64_t files;           /* 0: it has no fixed number of inodes */
        uint64_t files_free;
};

/*
 * fs_usage_ask() - statfs(2), which an xfs that has shut down after an error answers as ever. Returns 0 or negative errno: EIO
 * that.
 */
int fs_usage_ask(int fd, struct statfs *ret_fs);

/*
 * fs_usage_of() - of what statfs(2) says. It is not known of a filesystem without blocks, and of a FUSE filesystem of another
 * user namespace, which the kernel does not ask.
 */
void fs_usage_of(const struct statfs *fs, struct fs_usage *ret_usage);

/*
 * fs_usage_put() - a family of samples, PREFIX_filesystem_..., for each number that is known of these things. label() adds the
 * labels of a sample.
 */
typedef const struct fs_usage *fs_usage_find(const void *things, size_t i);
typedef void fs_usage_label(struct metrics_text *text, const void *things, size_t i);
void fs_usage_put(struct metrics_text *text, const char *prefix, const void *things, size_t count, fs_usage_find *find,
                  fs_usage_label *label);

/* Filesystems that did not answer, by their devices: what else is on them is not asked. After these, others are. */
struct fs_lost {
        uint64_t devices[16];
        size_t count;
};

/* fs_lost_add() - note one; 0 is none. fs_lost_has() - whether it is noted. */
void fs_lost_add(struct fs_lost *lost, uint64_t device);
bool fs_lost_has(const struct fs_lost *lost, uint64_t device);

#endif
