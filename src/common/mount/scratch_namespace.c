/* SPDX-License-Identifier: Apache-2.0 */
#include "mount/scratch_namespace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/syscalls.h"
#include "mount/identity.h"
#include "mount/superblock.h"
#include "process/namespace.h"

/* A directory that every node has. Not the root, because a process whose root is covered counts as chrooted and may not
 * create a user namespace (current_chrooted() in kernel/user_namespace.c). */
#define PLACE "/dev"

/* Enter a new mount namespace, with the mount at PLACE. */
static int enter_with(int mount_fd, struct error *error)
{
        struct mount_attr private = { .propagation = MS_PRIVATE };
        int r;

        if ((r = namespace_new_mounts(error)) < 0)
                return r;
        if (mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &private, sizeof private) < 0)
                return fail(error, errno, OPERATION_MOUNT_SETATTR, "/"); /* nothing of this may travel to the node */
        if (move_mount(mount_fd, "", AT_FDCWD, PLACE, MOVE_MOUNT_F_EMPTY_PATH) < 0)
                return fail(error, errno, OPERATION_MOVE_MOUNT, "a private namespace");
        return 0;
}

int scratch_namespace_enter(struct error *error)
{
        cleanup_close int tmpfs_fd = superblock_new_tmpfs(error);
        int r = tmpfs_fd < 0 ? tmpfs_fd : enter_with(tmpfs_fd, error);

        if (r < 0)
                return r;
        return fchdir(tmpfs_fd) < 0 ? fail(error, errno, "fchdir", "a private namespace") : 0;
}

int scratch_namespace_attach(int mount_fd, const char *name, bool directory, struct error *error)
{
        if ((directory ? mkdirat(AT_FDCWD, name, 0755) : mknodat(AT_FDCWD, name, S_IFREG | 0644, 0)) < 0)
                return fail(error, errno, "mkdir", "a private namespace");
        if (move_mount(mount_fd, "", AT_FDCWD, name, MOVE_MOUNT_F_EMPTY_PATH) < 0)
                return fail(error, errno, OPERATION_MOVE_MOUNT, "a private namespace");
        return 0;
}

int scratch_namespace_attach_first(int mount_fd, bool directory, const char **ret_path, struct error *error)
{
        int r;

        *ret_path = directory ? PLACE : "m";
        if (directory) /* at that place itself: a tmpfs costs as much as the rest of this */
                return enter_with(mount_fd, error);
        r = scratch_namespace_enter(error);
        return r < 0 ? r : scratch_namespace_attach(mount_fd, *ret_path, directory, error);
}

void scratch_namespace_uncover(const char *path)
{
        const char *name = strrchr(path, '/') + 1;
        char parent[PATH_MAX];
        char link[NAME_MAX + 64];
        cleanup_close int fd = -EBADF;

        if (snprintf(parent, sizeof parent, "%.*s", (int)(name - path), path) >= (int)sizeof parent)
                return;
        fd = sys_openat2(AT_FDCWD, parent, O_PATH | O_DIRECTORY, 0, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
        if (fd < 0)
                return;
        (void)snprintf(link, sizeof link, "/proc/self/fd/%d/%.255s", fd, name);
        (void)umount2(link, UMOUNT_NOFOLLOW); /* EINVAL: it is locked; EBUSY: a mount is on it */
}

int scratch_namespace_unmount(const char *name)
{
        return umount2(name, UMOUNT_NOFOLLOW) < 0 ? -errno : 0;
}

int scratch_namespace_count(void)
{
        struct mount_seen root;
        struct mnt_id_request request = { .size = sizeof request };
        uint64_t ids[256];
        int total = 0;
        int r = mount_see(AT_FDCWD, ".", &root);

        if (r < 0)
                return r;
        if (!root.identity.unique)
                return -ENOSYS;
        request.mnt_id = root.identity.id;
        do {
                r = sys_listmount(&request, ids, sizeof ids / sizeof ids[0]);
                if (r < 0)
                        return -errno;
                total += r;
                request.param = r > 0 ? ids[r - 1] : 0;
        } while (r == (int)(sizeof ids / sizeof ids[0]));
        return total;
}
