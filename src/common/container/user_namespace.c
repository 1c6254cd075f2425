/* SPDX-License-Identifier: Apache-2.0 */
#include "container/user_namespace.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "process/namespace.h"
#include "process/proc.h"
#include "process/sealed_child.h"

static bool is_same(const struct stat *one, const struct stat *other)
{
        return one->st_ino == other->st_ino && one->st_dev == other->st_dev;
}

/* 1: it is this process's own; 0: another, or negative errno. */
static int is_own(int fd)
{
        struct stat ours;
        struct stat st;
        int r = proc_own_namespace(OWN_USERS, &ours);

        return r < 0 ? r : fstat(fd, &st) < 0 ? -errno : is_same(&st, &ours);
}

/*
 * The kernel names the parent of each namespace below this process's own, and of no other. So the first one on the way
 * up whose parent it does not name is our own (docs/KERNEL.md#nested-user-namespaces).
 */
int user_namespace_outermost(int *fd, bool *ret_own, uid_t *ret_owner)
{
        cleanup_close int child = -EBADF;
        int parent;
        int r;

        *ret_owner = 0;
        *ret_own = true;
        while ((parent = ioctl(*fd, NS_GET_PARENT)) >= 0) { /* at most 32 levels (user_namespaces(7)) */
                fd_close(&child);
                child = *fd;
                *fd = parent;
        }
        if (errno != EPERM)
                return -errno;
        if (child < 0) { /* our own, or none below it */
                r = is_own(*fd);
                *ret_own = r != 1;
                return r == 1 ? 0 : r == 0 ? -EPERM : r;
        }
        fd_close(fd);
        *fd = fd_take(&child);
        return ioctl(*fd, NS_GET_OWNER_UID, ret_owner) < 0 ? -errno : 0;
}

bool user_namespace_owns(uid_t user, int ns_fd)
{
        cleanup_close int fd = ioctl(ns_fd, NS_GET_USERNS);
        uid_t owner = 0;
        bool own = false;

        return fd >= 0 && user_namespace_outermost(&fd, &own, &owner) == 0 && own && owner == user;
}

struct read_job {
        int user_ns_fd;
        const char *container;
        struct id_maps *maps;
};

static int enter(void *argument, struct error *error)
{
        const struct read_job *job = argument;
        int r = namespace_enter_user(job->user_ns_fd, job->container, error);

        return r < 0 ? r : job->user_ns_fd; /* any descriptor: it has entered */
}

/* The child may have ended: its maps can be read until it is waited for. */
static int read_of_child(int pid, void *argument, struct error *error)
{
        const struct read_job *job = argument;
        char path[32];
        cleanup_close int proc_fd = -EBADF;
        int r;

        (void)snprintf(path, sizeof path, "/proc/%d", pid);
        proc_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (proc_fd < 0)
                return fail(error, errno, "open", path);
        r = id_ranges_read_maps(proc_fd, job->maps);
        return r < 0 ? fail(error, -r, "read", "uid_map and gid_map") : 0;
}

int user_namespace_read(int user_ns_fd, int proc_fd, const char *container, struct id_maps *ret_maps,
                        struct error *error)
{
        struct read_job job = { .user_ns_fd = user_ns_fd, .container = container, .maps = ret_maps };
        struct stat theirs;
        struct stat st;
        int fd;

        /* A process never returns from a nested namespace: if it is in this one now, it was when its maps were read. */
        if (id_ranges_read_maps(proc_fd, ret_maps) == 0 && fstat(user_ns_fd, &st) == 0 &&
            fstatat(proc_fd, "ns/user", &theirs, 0) == 0 && is_same(&st, &theirs))
                return 0;
        fd = sealed_child_run_attended(enter, read_of_child, &job, &user_ns_fd, 1, error);
        if (fd < 0)
                return fd;
        fd_close(&fd); /* a copy of the namespace's */
        return 0;
}
