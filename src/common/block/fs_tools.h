/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fs_tools.h - external programs for filesystems: mkfs, fsck, resize.
 *
 * They are run by an exec helper (process/exec_helper), which accepts only the orders below, by number, and finds the
 * programs in fixed directories. They have no descriptors but /dev/null and a pipe for their output, a fixed
 * environment, capabilities only where the kernel requires one, and a system call filter.
 */
#ifndef FLEXGRAFT_BLOCK_FS_TOOLS_H
#define FLEXGRAFT_BLOCK_FS_TOOLS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "process/exec.h"

enum fs_tool {
        TOOL_MKFS_EXT4,
        TOOL_MKFS_XFS,
        TOOL_MKFS_BTRFS,
        TOOL_MKFS_EXT4_DIRECT, /* files are aligned to 2 MiB, for mappings with huge pages */
        TOOL_MKFS_XFS_DIRECT,
        TOOL_MKFS_XFS_SMALL_DIRECT, /* below 1 GiB: with four groups and stripes the log does not fit */
        TOOL_E2FSCK,                /* repairs that need no decision */
        TOOL_DEBUGFS_DIRTY,         /* write a new checksum for an ext4 superblock, and request a full check */
        TOOL_RESIZE2FS,             /* a mounted device */
        TOOL_XFS_GROWFS,            /* a directory of the mount */
        TOOL_BTRFS_GROW,            /* a directory of the mount */
        TOOLS
};

#define TOOL_OUTPUT_SIZE COMMAND_OUTPUT_SIZE

/* fs_tool_begin() - start the helper, before privileges_drop(). It ends with this process. */
int fs_tool_begin(int argc, char **argv, struct error *error);

/*
 * fs_tool_run() - run one, on a device or a directory of the node.
 *
 * Takes:   keep_blocks, for mkfs: do not discard, nor leave it to the kernel: allocated blocks of an image stay allocated.
 * Gives:   ret_output, of TOOL_OUTPUT_SIZE bytes: the first and the last part of its output, printable.
 * Returns: its exit status.
 * Errors:  ENOENT it is not installed; ETIMEDOUT it was killed after so many seconds; ECANCELED a signal killed it, or
 *          it is a mkfs and the process was asked to end (base/interrupt). It has ended, whatever is returned.
 *
 * How far a mkfs is, base/progress tells: how many bytes were written to the device, or discarded on it.
 */
int fs_tool_run(enum fs_tool tool, const char *argument, bool keep_blocks, unsigned timeout_seconds, char *ret_output,
                struct error *error);

/* fs_tool_end() - kill the helper and the program that it runs; nothing if there is no helper. */
void fs_tool_end(void);

#endif
