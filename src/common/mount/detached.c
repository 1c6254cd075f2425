/* SPDX-License-Identifier: Apache-2.0 */
#include "mount/detached.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/syscalls.h"
#include "mount/scratch_namespace.h"
#include "process/namespace.h"
#include "process/sealed_child.h"

int detached_mount_clone(int source_fd, const char *source, bool recursive, struct error *error)
{
        unsigned flags = AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | (recursive ? AT_RECURSIVE : 0);
        int fd = open_tree(source_fd, "", flags);

        return fd < 0 ? fail(error, errno, "open_tree", source) : fd;
}

int detached_mount_set(int mount_fd, const char *source, const struct mount_attributes *attributes, int user_ns_fd,
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

int detached_mount_map(int mount_fd, const char *source, bool recursive, int user_ns_fd, struct error *error)
{
        struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t)user_ns_fd };

        if (mount_setattr(mount_fd, "", AT_EMPTY_PATH | (recursive ? AT_RECURSIVE : 0), &attr, sizeof attr) < 0)
                return fail(error, errno, "mount_setattr", source);
        return 0;
}

struct clone_job {
        int source_fd;
        const struct container *container;
        const char *source;
        int user_ns_fd; /* a mapping for the clone, or -1 */
        bool recursive;
};

static int clone_in_child(void *argument, struct error *error)
{
        const struct clone_job *job = argument;
        unsigned flags = AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | (job->recursive ? AT_RECURSIVE : 0);
        struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t)job->user_ns_fd };
        int r = namespace_enter_mounts(job->container->mnt_ns_fd, job->container->name, error);
        int fd;

        if (r < 0)
                return r;
        fd = job->user_ns_fd < 0 ? open_tree(job->source_fd, "", flags)
                                 : sys_open_tree_attr(job->source_fd, "", flags, &attr, sizeof attr);
        return fd < 0 ? container_fail(job->container, errno, job->user_ns_fd < 0 ? "open_tree" : "open_tree_attr",
                                       job->source, error)
                      : fd;
}

int detached_mount_clone_inside(int source_fd, const struct container *container, const char *source, bool recursive,
                                int user_ns_fd, struct error *error)
{
        struct clone_job job = { .source_fd = source_fd,
                                 .container = container,
                                 .source = source,
                                 .user_ns_fd = user_ns_fd,
                                 .recursive = recursive };
        const int keep[] = { source_fd, container->mnt_ns_fd, user_ns_fd };

        return sealed_child_run(clone_in_child, &job, keep, user_ns_fd < 0 ? 2 : 3, error);
}

struct lock_job {
        int mount_fd;
        int user_ns_fd;
        const char *container;
        bool directory;
        bool recursive;
};

static int lock_in_child(void *argument, struct error *error)
{
        const struct lock_job *job = argument;
        unsigned flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | (job->recursive ? AT_RECURSIVE : 0);
        int r;
        int fd;

        if ((r = scratch_namespace_enter(error)) < 0 ||
            (r = scratch_namespace_attach(job->mount_fd, "m", job->directory, error)) < 0)
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

        return sealed_child_run(lock_in_child, &job, keep, sizeof keep / sizeof keep[0], error);
}
