/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fs_tools.h - other people's programs: mkfs, fsck, growing a filesystem.
 *
 * A program that may execute nothing cannot be made to execute something. So before it gives its privileges away it
 * starts a second process, the runner, which takes only the orders below, by number, and knows the programs by fixed
 * paths. What runs has nothing open but /dev/null and a pipe for what it says, an environment of our own, no
 * capability but where the kernel wants one for its work, and a system call filter.
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
        TOOL_MKFS_EXT4_DIRECT, /* files begin at multiples of 2 MiB, so that they are mapped by huge pages */
        TOOL_MKFS_XFS_DIRECT,
        TOOL_MKFS_XFS_SMALL_DIRECT, /* below 1 GiB: in four groups, stripes leave no room for the log */
        TOOL_E2FSCK,                /* repair what can be repaired without asking */
        TOOL_DEBUGFS_DIRTY,         /* sign an ext4 superblock anew, and ask for a check of all of it */
        TOOL_RESIZE2FS,             /* of a device, mounted */
        TOOL_XFS_GROWFS,            /* of a directory, mounted */
        TOOL_BTRFS_GROW,            /* of a directory, mounted */
        TOOLS
};

#define TOOL_OUTPUT_SIZE COMMAND_OUTPUT_SIZE

/* fs_tool_begin() - start the runner. Before privileges_drop(); it ends with us. */
int fs_tool_begin(int argc, char **argv, struct error *error);

/*
 * fs_tool_run() - run one, on a device or a directory of the node.
 *
 * Takes:   keep_blocks, for a mkfs: what the device has been given stays its own, and nothing is discarded.
 * Gives:   ret_output, of TOOL_OUTPUT_SIZE bytes: the end of what it said, printable.
 * Returns: its exit status.
 * Errors:  ENOENT it is not installed; ETIMEDOUT it was killed after so many seconds; ECANCELED it died of a signal.
 */
int fs_tool_run(enum fs_tool tool, const char *argument, bool keep_blocks, unsigned timeout_seconds, char *ret_output,
                struct error *error);

/* fs_tool_end() - end the runner, with whatever it runs; nothing if there is none. */
void fs_tool_end(void);

#endif
