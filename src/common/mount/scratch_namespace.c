/* SPDX-License-Identifier: Apache-2.0 */
#include "mount/scratch_namespace.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "mount/superblock.h"
#include "process/namespace.h"

int scratch_namespace_enter(struct error *error)
{
        struct mount_attr private = { .propagation = MS_PRIVATE };
        cleanup_close int stage_fd = -EBADF;
        int r;

        if ((r = namespace_new_mounts(error)) < 0)
                return r;
        if (mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &private, sizeof private) < 0)
                return fail(error, errno, "mount_setattr", "/"); /* nothing of this may travel to the node */
        stage_fd = superblock_new_tmpfs(error);
        if (stage_fd < 0)
                return stage_fd;
        if (move_mount(stage_fd, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH) < 0)
                return fail(error, errno, "move_mount", "a private namespace");
        if (fchdir(stage_fd) < 0)
                return fail(error, errno, "fchdir", "a private namespace");
        return 0;
}

int scratch_namespace_attach(int mount_fd, const char *name, bool directory, struct error *error)
{
        if ((directory ? mkdirat(AT_FDCWD, name, 0755) : mknodat(AT_FDCWD, name, S_IFREG | 0644, 0)) < 0)
                return fail(error, errno, "mkdir", "a private namespace");
        if (move_mount(mount_fd, "", AT_FDCWD, name, MOVE_MOUNT_F_EMPTY_PATH) < 0)
                return fail(error, errno, "move_mount", "a private namespace");
        return 0;
}
