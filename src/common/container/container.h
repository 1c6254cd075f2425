/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container.h - a running container: a process pinned once, with what is needed of its namespaces, then verified.
 *
 * After container_pin() no pid is ever used again: a process that reuses the number is not touched.
 */
#ifndef FLEXGRAFT_CONTAINER_CONTAINER_H
#define FLEXGRAFT_CONTAINER_CONTAINER_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "container/reference.h"

#define CONTAINER_NAME_MAX 129 /* an id, terminated */

/* A mount namespace: its inode number is used again after its end, its id (Linux 6.11) never. */
struct namespace_identity {
        uint64_t inode;
        uint64_t id; /* 0: this kernel does not say */
};

struct container {
        pid_t pid;
        char name[CONTAINER_NAME_MAX]; /* its id, or "pid 4711": for people */
        char id[CONTAINER_NAME_MAX];   /* "" when it was named by pid */
        uint64_t start_time;           /* clock ticks since boot */
        int proc_fd;                   /* its directory in procfs */
        int pidfd;                     /* -EBADF when procDir is of another pid namespace: proc_fd then pins alone */
        int root_fd;                   /* O_PATH on its root directory: what targets are resolved beneath */
        int mnt_ns_fd;
        int user_ns_fd;
        struct namespace_identity mnt_ns;
        char root_prefix[PATH_MAX]; /* where root_fd is in its mount namespace; "" once it is the root, as always but in
                                       hooks that run before pivot_root */
        bool own_user_ns;           /* false: it lives in the node's own user namespace, and nothing needs mapping */
};

#define CONTAINER_NONE                                                                                                 \
        {                                                                                                              \
                .proc_fd = -EBADF, .pidfd = -EBADF, .root_fd = -EBADF, .mnt_ns_fd = -EBADF, .user_ns_fd = -EBADF       \
        }

/*
 * container_pin() - find the process, open it, its namespaces and its root, then see that it is still the one meant.
 *
 * Runs in: the node's namespaces. Needs CAP_SYS_PTRACE for a process in another user namespace.
 * Gives:   ret_container, released by container_release().
 * Errors:  ESRCH no such process, or it is another one by now (by start time); ENOENT no such container id; ENOTUNIQ
 *          an id that several runtimes know for different processes; EINVAL a process in the node's own mount
 *          namespace, which is no container.
 */
int container_pin(const struct container_reference *reference, struct container *ret_container, struct error *error);

/*
 * container_pin_namespace() - any process of this mount namespace, where the one that was recorded has ended: a
 * container named by a process that was not its first lives on. Looks through the whole of /proc.
 *
 * Errors:  ESRCH there is none.
 */
int container_pin_namespace(const struct namespace_identity *mnt_ns, struct container *ret_container,
                            struct error *error);

bool container_same_namespace(const struct namespace_identity *one, const struct namespace_identity *other);

/* container_alive() - 0 while the pinned process runs, else ESRCH with the error filled. */
int container_alive(const struct container *container, struct error *error);

/*
 * container_root_ids() - the node's ids of the container's root: who owns what is made for it.
 *
 * Errors: EINVAL when its user namespace maps no id 0; ESRCH.
 */
int container_root_ids(const struct container *container, uid_t *ret_uid, gid_t *ret_gid, struct error *error);

/* container_wait_end() - wait until the pinned process has ended, at most that long. */
void container_wait_end(const struct container *container, int timeout_ms);

/*
 * container_node_id() - what a user or group id of the container is on the node.
 *
 * Takes:   map, "uid_map" or "gid_map". Errors: EINVAL it is not mapped; ESRCH.
 */
int container_node_id(const struct container *container, const char *map, uint32_t id, uint32_t *ret_node_id,
                      struct error *error);

/* container_inside_id() - the other way round, written over id. 0; -EINVAL it is nobody in there; negative errno. */
int container_inside_id(const struct container *container, const char *map, uint32_t *id);

/* container_same_user_ns() - whether the ids of two containers are the same by nature. */
bool container_same_user_ns(const struct container *one, const struct container *other);

/*
 * container_may_change() - whether the container's root, by its own capabilities, may change a directory of these
 * owners: the kernel asks the same of it (capable_wrt_inode_uidgid()), that both are mapped in its user namespace. 0;
 * or EACCES. Always 0 in the node's own user namespace.
 */
int container_may_change(const struct container *container, uid_t uid, gid_t gid, struct error *error);

/* container_fail() - fail(), for a path or a call that concerns the container rather than the node. */
static inline int container_fail(const struct container *container, int errnum, const char *operation,
                                 const char *subject, struct error *error)
{
        (void)fail(error, errnum, operation, subject);
        return error_where(error, container->name);
}

void container_release(struct container *container);
#define cleanup_container __attribute__((cleanup(container_release)))

#endif
