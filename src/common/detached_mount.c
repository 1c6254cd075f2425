/* SPDX-License-Identifier: Apache-2.0 */
#include "detached_mount.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fd.h"
#include "namespace.h"
#include "ns_worker.h"
#include "superblock.h"

int detached_mount_clone(int source_fd, const char *source, bool recursive, struct error *error)
{
        unsigned flags = AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | (recursive ? AT_RECURSIVE : 0);
        int fd = open_tree(source_fd, "", flags);

        return fd < 0 ? fail(error, errno, "open_tree", source) : fd;
}

int detached_mount_dress(int mount_fd, const char *source, const struct mount_attributes *attributes, int user_ns_fd,
                         struct error *error)
{
        unsigned flags = AT_EMPTY_PATH | (attributes->recursive ? AT_RECURSIVE : 0);
        struct mount_attr attr = { .attr_set = attributes->set,
                                   .attr_clr = attributes->clear,
                                   .propagation = attributes->propagation };

        if (attributes->propagation == MS_SHARED && attributes->apart) {
                /* Never a peer of the node's: what the container mounts below must not appear there. A slave of the
                 * source that is then shared again travels on to the container's own namespaces alone. */
                struct mount_attr slave = { .propagation = MS_SLAVE };

                if (mount_setattr(mount_fd, "", flags, &slave, sizeof slave) < 0)
                        return fail(error, errno, "mount_setattr", source);
        }
        if (user_ns_fd >= 0) {
                attr.attr_set |= MOUNT_ATTR_IDMAP;
                attr.userns_fd = (uint64_t)user_ns_fd;
        }
        if (mount_setattr(mount_fd, "", flags, &attr, sizeof attr) < 0)
                return fail(error, errno, "mount_setattr", source);
        return 0;
}

struct lock_job {
        int mount_fd;
        int user_ns_fd;
        const char *container;
        bool directory;
        bool recursive;
};

/* In a private copy of the node's mount namespace: a tmpfs over its root, the mount on it, as "./m". */
static int expose_alone(const struct lock_job *job, struct error *error)
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
        if ((job->directory ? mkdirat(AT_FDCWD, "m", 0755) : mknodat(AT_FDCWD, "m", S_IFREG | 0644, 0)) < 0)
                return fail(error, errno, "mkdir", "a private namespace");
        if (move_mount(job->mount_fd, "", AT_FDCWD, "m", MOVE_MOUNT_F_EMPTY_PATH) < 0)
                return fail(error, errno, "move_mount", "a private namespace");
        return 0;
}

static int lock_in_child(void *argument, struct error *error)
{
        const struct lock_job *job = argument;
        unsigned flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | (job->recursive ? AT_RECURSIVE : 0);
        int r;
        int fd;

        if ((r = expose_alone(job, error)) < 0)
                return r;
        /* from here on the container's root, in a process it may stop but not trace */
        if ((r = namespace_become_root_of(job->user_ns_fd, job->container, error)) < 0)
                return r;
        if ((r = namespace_new_mounts(error)) < 0) /* locks; our working directory is now in the copy */
                return r;
        fd = open_tree(AT_FDCWD, "m", flags);
        return fd < 0 ? fail(error, errno, "open_tree", "a locked mount") : fd;
}

int detached_mount_lock(int mount_fd, const struct container *container, bool directory, bool recursive,
                        struct error *error)
{
        struct lock_job job = { .mount_fd = mount_fd,
                                .user_ns_fd = container->user_ns_fd,
                                .container = container->name,
                                .directory = directory,
                                .recursive = recursive };
        const int keep[] = { mount_fd, container->user_ns_fd };

        return ns_worker_run(lock_in_child, &job, keep, sizeof keep / sizeof keep[0], error);
}
