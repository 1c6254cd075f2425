/* SPDX-License-Identifier: Apache-2.0 */
/*
 * detached.h - mounts nobody can see yet: cloned, dressed, locked; alive while their descriptor is open.
 */
#ifndef FLEXGRAFT_MOUNT_DETACHED_H
#define FLEXGRAFT_MOUNT_DETACHED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "container/container.h"

/* What a mount shall look like: mount_setattr(2)'s own values. */
struct mount_attributes {
        uint64_t set;
        uint64_t clear;
        uint64_t propagation; /* MS_PRIVATE, MS_SLAVE, MS_SHARED, MS_UNBINDABLE */
        bool recursive;       /* the mounts below it, too */
        bool apart;           /* never a peer of the node's mounts: for a container with a user namespace of its own */
};

/*
 * detached_mount_clone() - a second mount of what source_fd is on, detached.
 *
 * Needs:   CAP_SYS_ADMIN; the source in our own mount namespace.
 * Errors:  EINVAL the source is unbindable, or in another mount namespace.
 */
int detached_mount_clone(int source_fd, const char *source, bool recursive, struct error *error);

/*
 * detached_mount_dress() - set attributes and propagation, and with user_ns_fd >= 0 map ids: who owns what on the
 * filesystem as 0..n is shown as the node's ids of that user namespace's 0..n. All or nothing, in one system call.
 *
 * Needs:   CAP_SYS_ADMIN in the user namespace that owns the filesystem.
 * Errors:  with user_ns_fd: EINVAL the filesystem, or a mount below it, cannot be id-mapped; EPERM it is already.
 */
int detached_mount_dress(int mount_fd, const char *source, const struct mount_attributes *attributes, int user_ns_fd,
                         struct error *error);

/* detached_mount_map() - only the ids of that, on a mount nobody sees; errors as there. */
int detached_mount_map(int mount_fd, const char *source, bool recursive, int user_ns_fd, struct error *error);

/*
 * detached_mount_clone_inside() - a clone of what source_fd is on in a container's mount namespace, where alone it can
 * be cloned; made by a sealed child that enters that namespace and stays in the node's user namespace.
 *
 * Takes:   user_ns_fd, or -1: with it the clone gets this id mapping, also where the source has another (Linux 6.15,
 *          open_tree_attr).
 * Errors:  ENOSYS no open_tree_attr; EINVAL unbindable, or without recursive a mount below that is locked there;
 *          those of detached_mount_dress().
 */
int detached_mount_clone_inside(int source_fd, const struct container *container, const char *source, bool recursive,
                                int user_ns_fd, struct error *error);

/*
 * detached_mount_lock() - the same mount, its attributes locked: root in the container's user namespace can no longer
 * remount read-only, nosuid, nodev and noexec away.
 *
 * How: the kernel locks the attributes of every mount that a less privileged user namespace gets with its copy of a
 * mount namespace (lock_mnt_tree() in fs/namespace.c), and a clone of such a mount keeps its locks. So a sealed child
 * puts the mount into a private mount namespace of the node's, becomes the container's root, copies that namespace and
 * clones the copy. Seen on 6.18 and 6.1.
 *
 * Needs:   CAP_SYS_ADMIN, CAP_SETUID, CAP_SETGID. The container must have a user namespace of its own.
 * Returns: the locked mount's descriptor, owned by the caller; mount_fd stays the caller's.
 */
int detached_mount_lock(int mount_fd, const struct container *container, bool directory, bool recursive,
                        struct error *error);

#endif
