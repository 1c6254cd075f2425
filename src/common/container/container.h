/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container.h - a running container: its first process, with descriptors of its namespaces, opened once and verified.
 *
 * After container_pin() the pid is not used any more, so that a process that reuses the number is never touched.
 */
#ifndef FLEXGRAFT_CONTAINER_CONTAINER_H
#define FLEXGRAFT_CONTAINER_CONTAINER_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/failure.h"
#include "container/identity.h"
#include "container/reference.h"
#include "process/id_ranges.h"

/* A mount namespace. Its inode number is reused after its end, its id (Linux 6.11) never. */
struct namespace_identity {
        uint64_t inode;
        uint64_t id; /* 0: unknown to this kernel */
};

struct container {
        pid_t pid;
        char name[CONTAINER_NAME_MAX];         /* for messages: its id, or "pid 4711" */
        char id[CONTAINER_NAME_MAX];           /* "" when the request has a pid */
        const char *runtime;                   /* where that id was found; NULL: nowhere */
        char identity[CONTAINER_IDENTITY_MAX]; /* container/identity.h; "" it has none */
        uint64_t start_time;                   /* clock ticks since boot */
        int proc_fd;                           /* its directory in procfs */
        int pidfd;   /* -EBADF when procDir belongs to another pid namespace: proc_fd is enough */
        int root_fd; /* O_PATH on its root directory; targets are resolved beneath it */
        int mnt_ns_fd;
        int user_ns_fd; /* the one that the runtime created; the process may be in another, nested in it */
        struct namespace_identity mnt_ns;
        char *root_prefix;    /* the path of root_fd in its mount namespace; NULL except in hooks that run before
                                 pivot_root */
        bool own_user_ns;     /* false: it is in the node's user namespace, and ids need no mapping */
        bool foreign_user_ns; /* its user namespace is not below this process's own */
        uid_t map_owner;      /* the user on the node who created user_ns_fd, and so chose its map */
};

#define CONTAINER_NONE                                                                                                 \
        {                                                                                                              \
                .proc_fd = -EBADF, .pidfd = -EBADF, .root_fd = -EBADF, .mnt_ns_fd = -EBADF, .user_ns_fd = -EBADF       \
        }

/*
 * container_pin() - find the process, open it, its namespaces and its root, then check that it is still the same.
 *
 * Runs in: the node's namespaces. Needs CAP_SYS_PTRACE for a process in another user namespace.
 * Gives:   ret_container, released by container_release().
 * Errors:  ESRCH no such process, or another one has its pid by now (start time); ENOENT no such container id; ENOTUNIQ
 *          several runtimes have this id, with different processes; EINVAL the process is in the mount namespace
 *          of the node, so it is not a container.
 */
int container_pin(const struct container_reference *reference, struct container *ret_container, struct error *error);

/*
 * container_pin_namespace() - pin any process of this mount namespace, when the recorded one has ended: it need not
 * have been the container's first. Searches /proc, at most once a second for those that are not there.
 *
 * Errors:  ESRCH no process is in it.
 */
int container_pin_namespace(const struct namespace_identity *mnt_ns, struct container *ret_container,
                            struct error *error);

/*
 * container_namespace_gone() - whether a mount namespace is gone that another pid namespace's processes were in. In the
 * node's pid namespace those are all in /proc. Elsewhere the kernel says so from Linux 6.11 (listmount), to a program
 * that has CAP_SYS_ADMIN in the node's user namespace (docs/KERNEL.md#asking-about-a-mount-and-removing-it).
 *
 * Returns: false, too, where it cannot be known.
 */
bool container_namespace_gone(const struct namespace_identity *mnt_ns);

bool container_same_namespace(const struct namespace_identity *one, const struct namespace_identity *other);

/* container_alive() - 0 while the pinned process runs, else ESRCH. */
int container_alive(const struct container *container, struct error *error);

/*
 * container_root_ids() - the ids that the container's root has on the node: the owner of directories made for it.
 *
 * They are what its process has for them, which may be in a user namespace nested in the container's.
 * container_own_root_ids() - those of the user namespace that the runtime created, whatever is nested in it.
 *
 * Errors: EINVAL when its user namespace maps no id 0; ESRCH.
 */
int container_root_ids(const struct container *container, uid_t *ret_uid, gid_t *ret_gid, struct error *error);
int container_own_root_ids(const struct container *container, uid_t *ret_uid, gid_t *ret_gid, struct error *error);

/* container_wait_end() - wait until the pinned process has ended, at most that long. */
void container_wait_end(const struct container *container, int timeout_ms);

/*
 * container_node_id() - what a user or group id, as the container's process sees it, is on the node.
 *
 * Takes:   map, "uid_map" or "gid_map". Errors: EINVAL it is not mapped; ESRCH.
 */
int container_node_id(const struct container *container, const char *map, uint32_t id, uint32_t *ret_node_id,
                      struct error *error);

/*
 * container_read_maps() - the maps of the user namespace that the runtime created: which ids of a disk or a server are
 * the container's. One range of all ids in the node's user namespace.
 */
int container_read_maps(const struct container *container, struct id_maps *ret_maps, struct error *error);

/* container_same_user_ns() - whether the runtimes gave two containers the same user namespace, and so the same ids. */
bool container_same_user_ns(const struct container *one, const struct container *other);

/*
 * container_may_change() - 0 if the container's root may change a directory with these owners, else EACCES. The rule
 * is the kernel's (docs/KERNEL.md#id-mapped-mounts): both ids are mapped in its user namespace. Always 0 in the node's
 * user namespace.
 */
int container_may_change(const struct container *container, uid_t uid, gid_t gid, struct error *error);

/* container_fail() - fail(), for a failure that concerns the container, not the node. */
static inline int container_fail(const struct container *container, int errnum, const char *operation,
                                 const char *subject, struct error *error)
{
        (void)fail(error, errnum, operation, subject);
        return error_where(error, container->name);
}

void container_release(struct container *container);
#define cleanup_container __attribute__((cleanup(container_release)))

/* ---- hints.c: what to do about failures of a container: how it was looked up and pinned */
extern const struct hint container_hints[];

#endif
