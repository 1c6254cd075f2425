/* SPDX-License-Identifier: Apache-2.0 */
#include "mount/detached.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/syscalls.h"
#include "mount/identity.h"
#include "mount/mountinfo.h"
#include "mount/scratch_namespace.h"
#include "process/namespace.h"
#include "process/worker.h"

/* The line of the mount that source_fd is on: 1, 0 it is not there, or negative errno. proc_fd: -1: of our namespace. */
static int find_line(struct mountinfo *table, int source_fd, int proc_fd)
{
        uint64_t id = 0; /* LTO takes it for uninitialised */
        int r = mount_see_short_id(source_fd, &id);

        if (r < 0 || (r = proc_fd < 0 ? mountinfo_open_own(table) : mountinfo_open(table, proc_fd)) < 0)
                return r;
        while (mountinfo_next(table))
                if (table->id == id)
                        return 1;
        return 0;
}

/* The kernel says EINVAL for three reasons. */
static int explain(int source_fd, int proc_fd, const char *source, bool recursive, struct error *error)
{
        cleanup_mount_table struct mountinfo table = {};
        int found = find_line(&table, source_fd, proc_fd);

        if (found < 0 || (found > 0 && table.unbindable))
                return -error->errnum;
        if (found > 0 && !recursive)
                return fail_because(error, EINVAL, OPERATION_CLONE_MOUNT, source, "a mount below it is locked there");
        return fail_because(error, ESTALE, OPERATION_CLONE_MOUNT, source, "its mount was unmounted meanwhile");
}

int detached_mount_clone(int source_fd, const char *source, bool recursive, struct error *error)
{
        unsigned flags = AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | (recursive ? AT_RECURSIVE : 0);
        int fd = open_tree(source_fd, "", flags);

        if (fd < 0)
                (void)fail(error, errno, OPERATION_OPEN_TREE, source);
        return fd >= 0                   ? fd
               : error->errnum == EINVAL ? explain(source_fd, /* proc_fd= */ -1, source, recursive, error)
                                         : -error->errnum;
}

static int clone_with(int source_fd, bool recursive, int user_ns_fd)
{
        unsigned flags = AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | (recursive ? AT_RECURSIVE : 0);
        struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t)user_ns_fd };

        return sys_open_tree_attr(source_fd, "", flags, &attr, sizeof attr);
}

int detached_mount_clone_anew(int source_fd, const char *source, bool recursive, int user_ns_fd, struct error *error)
{
        int fd = clone_with(source_fd, recursive, user_ns_fd);

        return fd < 0 ? fail(error, errno, OPERATION_OPEN_TREE_ATTR, source) : fd;
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
                        return fail(error, errno, OPERATION_MOUNT_SETATTR, source);
        }
        if (user_ns_fd >= 0) {
                attr.attr_set |= MOUNT_ATTR_IDMAP;
                attr.userns_fd = (uint64_t)user_ns_fd;
        }
        if (mount_setattr(mount_fd, "", flags, &attr, sizeof attr) < 0)
                return fail(error, errno, OPERATION_MOUNT_SETATTR, source);
        return 0;
}

int detached_mount_map(int mount_fd, const char *source, bool recursive, int user_ns_fd, struct error *error)
{
        struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t)user_ns_fd };

        if (mount_setattr(mount_fd, "", AT_EMPTY_PATH | (recursive ? AT_RECURSIVE : 0), &attr, sizeof attr) < 0)
                return fail(error, errno, OPERATION_MOUNT_SETATTR, source);
        return 0;
}

struct below_job {
        int mount_fd;
        int dir_fd;
        const char *source;
};

static int clone_below_apart(void *argument, struct error *error)
{
        const struct below_job *job = argument;
        const char *ignored; /* where it is: the descriptor leads there */
        int r = scratch_namespace_attach_first(job->mount_fd, /* directory= */ true, &ignored, error);

        return r < 0 ? r : detached_mount_clone(job->dir_fd, job->source, /* recursive= */ false, error);
}

int detached_mount_clone_below(int mount_fd, int dir_fd, const char *source, struct error *error)
{
        struct below_job job = { .mount_fd = mount_fd, .dir_fd = dir_fd, .source = source };
        int fd = open_tree(dir_fd, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

        if (fd >= 0)
                return fd;
        if (errno != EINVAL)
                return fail(error, errno, OPERATION_OPEN_TREE, source);
        return worker_run_apart(clone_below_apart, NULL, &job, error);
}

int detached_mount_descend(int mount_fd, const char *path, const char *source, struct error *error)
{
        cleanup_close int root_fd = mount_fd;
        cleanup_close int fd = sys_openat2(root_fd, path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0,
                                           RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);

        return fd < 0 ? fail(error, errno, "open", path) : detached_mount_clone_below(root_fd, fd, source, error);
}

struct clone_job {
        int source_fd;
        const struct container *container;
        const char *source;
        int user_ns_fd; /* a mapping for the clone, or -1 */
        bool recursive;
        int clone_fd;
};

static int clone_apart(void *argument, struct error *error)
{
        const struct clone_job *job = argument;
        unsigned flags = AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | (job->recursive ? AT_RECURSIVE : 0);
        int r = namespace_enter_mounts(job->container->mnt_ns_fd, job->container->name, error);
        int fd;

        if (r < 0)
                return r;
        fd = job->user_ns_fd < 0 ? open_tree(job->source_fd, "", flags)
                                 : clone_with(job->source_fd, job->recursive, job->user_ns_fd);
        return fd < 0 ? container_fail(job->container, errno,
                                       job->user_ns_fd < 0 ? OPERATION_OPEN_TREE : OPERATION_OPEN_TREE_ATTR,
                                       job->source, error)
                      : fd;
}

/* Of a clone that failed with EINVAL; from the node, since /proc there is the container's. */
static int explain_inside(const struct clone_job *job, struct error *error)
{
        if (strcmp(error->operation, OPERATION_OPEN_TREE) != 0)
                return -error->errnum;
        (void)explain(job->source_fd, job->container->proc_fd, job->source, job->recursive, error);
        return error_where(error, job->container->name);
}

int detached_mount_clone_inside(int source_fd, const struct container *container, const char *source, bool recursive,
                                int user_ns_fd, struct error *error)
{
        struct clone_job job = { .source_fd = source_fd,
                                 .container = container,
                                 .source = source,
                                 .user_ns_fd = user_ns_fd,
                                 .recursive = recursive };

        int r = worker_run_apart(clone_apart, NULL, &job, error);

        return r == -EINVAL ? explain_inside(&job, error) : r;
}

/* The clone, before the child makes the mapping; its descriptor is left in the job. */
static int clone_first(void *argument, struct error *error)
{
        struct clone_job *job = argument;

        job->clone_fd = clone_apart(argument, error);
        return job->clone_fd;
}

int detached_mount_clone_mapped(int source_fd, const struct container *container, const char *source, bool recursive,
                                const struct idmap *mapping, struct error *error)
{
        struct clone_job job = { .source_fd = source_fd,
                                 .container = container,
                                 .source = source,
                                 .user_ns_fd = -1,
                                 .recursive = recursive,
                                 .clone_fd = -EBADF };
        cleanup_close int user_ns_fd = idmap_open_after(mapping, clone_first, &job, error);
        cleanup_close int fd = job.clone_fd;
        int r;

        /* a container that just then mounts something on "/" leaves the child without the namespace's root directory */
        if (user_ns_fd == -EPERM && fd >= 0)
                user_ns_fd = idmap_open(mapping, error);
        if (user_ns_fd == -EINVAL && fd < 0)
                return explain_inside(&job, error);
        r = user_ns_fd < 0 ? user_ns_fd : detached_mount_map(fd, source, recursive, user_ns_fd, error);
        return r < 0 ? r : fd_take(&fd);
}

struct lock_job {
        int mount_fd;
        bool directory;
        bool recursive;
};

/* In a private mount namespace: a clone of the mount at the path, whose attributes are locked. */
static int copy_locked(const char *path, bool recursive, struct error *error)
{
        unsigned flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | (recursive ? AT_RECURSIVE : 0);
        int r = namespace_new_user(error);
        int fd;

        if (r < 0 ||
            (r = namespace_new_mounts(error)) < 0) /* locks; our root and working directory are now in the copy */
                return r;
        fd = open_tree(AT_FDCWD, path, flags);
        return fd < 0 ? fail(error, errno, OPERATION_OPEN_TREE, "a locked mount") : fd;
}

static int lock_apart(void *argument, struct error *error)
{
        const struct lock_job *job = argument;
        const char *path;
        int r = scratch_namespace_attach_first(job->mount_fd, job->directory, &path, error);

        return r < 0 ? r : copy_locked(path, job->recursive, error);
}

int detached_mount_lock_here(int mount_fd, bool scratch, struct error *error)
{
        const char *path = "m";
        int r = scratch ? scratch_namespace_attach(mount_fd, path, /* directory= */ true, error)
                        : scratch_namespace_attach_first(mount_fd, /* directory= */ true, &path, error);

        return r < 0 ? r : copy_locked(path, /* recursive= */ false, error);
}

int detached_mount_lock(int mount_fd, bool directory, bool recursive, struct error *error)
{
        struct lock_job job = { .mount_fd = mount_fd, .directory = directory, .recursive = recursive };

        return worker_run_apart(lock_apart, NULL, &job, error);
}
