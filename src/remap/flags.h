/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flags.h - FUSE_IOCTL: the flags of a file or directory (chattr(1)), and what a filesystem has besides (struct fsxattr). No
 * other ioctl is passed on: what it would do to the source, a filesystem of the node, is not known here.
 *
 * The kernel's vfs_fileattr_set() has checked before that the caller owns the file or has CAP_FOWNER for it, that it has
 * CAP_LINUX_IMMUTABLE on the node if the flags immutable or append-only change, and, outside of the node's user namespace,
 * that the project stays the same (fileattr_set_prepare() in fs/file_attr.c; docs/KERNEL.md, "FUSE"). The attributes and
 * flags that it knew may be older. So the owner is looked at again here; this process has no CAP_LINUX_IMMUTABLE; and the
 * project never changes, also not for a process of the node: its quota limits volumes.
 *
 * What is done twice, after a crash, is the same.
 */
#ifndef FLEXGRAFT_REMAP_FLAGS_H
#define FLEXGRAFT_REMAP_FLAGS_H

#include "fuse_library.h"

void flags_ioctl(fuse_req_t request, fuse_ino_t number, unsigned command, void *argument, struct fuse_file_info *file,
                 unsigned ioctl_flags, const void *in, size_t in_size, size_t out_size);

#endif
