/* SPDX-License-Identifier: Apache-2.0 */
/*
 * detached.h - detached mounts: cloned, their attributes set, locked. They exist while their descriptor is open.
 */
#ifndef FLEXGRAFT_MOUNT_DETACHED_H
#define FLEXGRAFT_MOUNT_DETACHED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "container/container.h"
#include "mount/idmap.h"

/* The attributes of a mount, in mount_setattr(2)'s values. */
struct mount_attributes {
        uint64_t set;
        uint64_t clear;
        uint64_t propagation; /* MS_PRIVATE, MS_SLAVE, MS_SHARED, MS_UNBINDABLE */
        bool recursive;       /* the mounts below it, too */
        bool apart;           /* no peer of the node's mounts: for a container with its own user namespace */
};

/*
 * detached_mount_clone() - a detached clone of the mount that source_fd is on, from source_fd down.
 *
 * Needs:   CAP_SYS_ADMIN; the source in our own mount namespace.
 * Errors:  EINVAL the source is unbindable, or without recursive a mount below it is locked; ESTALE it was unmounted, or is
 *          in another mount namespace.
 */
int detached_mount_clone(int source_fd, const char *source, bool recursive, struct error *error);

/*
 * detached_mount_clone_below() - the same of a detached mount, from dir_fd, a directory of it, down. mount_fd, its root,
 * stays the caller's, and can be placed nowhere any more. Before Linux 6.15 only what is in a mount namespace can be cloned: a
 * child puts it into a private one.
 */
int detached_mount_clone_below(int mount_fd, int dir_fd, const char *source, struct error *error);

/*
 * detached_mount_descend() - the same of a directory by its path, which symbolic links, as containers may have made them,
 * do not lead out of the mount. Closes mount_fd.
 */
int detached_mount_descend(int mount_fd, const char *path, const char *source, struct error *error);

/*
 * detached_mount_clone_anew() - the same with an id mapping of its own, also where the source has another.
 *
 * Errors:  ENOSYS before Linux 6.15 (open_tree_attr); EINVAL the filesystem, or a mount below it, cannot be id-mapped.
 */
int detached_mount_clone_anew(int source_fd, const char *source, bool recursive, int user_ns_fd, struct error *error);

/*
 * detached_mount_set() - set attributes and propagation, and with user_ns_fd >= 0 the id mapping: an owner 0..n on the
 * filesystem is shown as the id that this user namespace maps 0..n to on the node. All or nothing, in one system call.
 *
 * Needs:   CAP_SYS_ADMIN in the user namespace that owns the filesystem.
 * Errors:  with user_ns_fd: EINVAL the filesystem, or a mount below it, cannot be id-mapped; EPERM it is already
 *          (docs/KERNEL.md#id-mapped-mounts).
 */
int detached_mount_set(int mount_fd, const char *source, const struct mount_attributes *attributes, int user_ns_fd,
                       struct error *error);

/* detached_mount_map() - set only the id mapping; errors as there. */
int detached_mount_map(int mount_fd, const char *source, bool recursive, int user_ns_fd, struct error *error);

/*
 * detached_mount_clone_inside() - the same for a source in a container's mount namespace, by a child that enters that
 * namespace, the only one in which it can be cloned, and stays in the node's user namespace.
 *
 * Takes:   user_ns_fd, or -1: with it the clone gets this id mapping, also where the source has another (Linux 6.15,
 *          open_tree_attr).
 * Errors:  ENOSYS no open_tree_attr; those of detached_mount_clone() and detached_mount_set().
 */
int detached_mount_clone_inside(int source_fd, const struct container *container, const char *source, bool recursive,
                                int user_ns_fd, struct error *error);

/*
 * detached_mount_clone_mapped() - such a clone, and then a new mapping for it: both by one child. Errors: theirs, those
 * of idmap_open(), and EPERM where the source is id-mapped already.
 */
int detached_mount_clone_mapped(int source_fd, const struct container *container, const char *source, bool recursive,
                                const struct idmap *mapping, struct error *error);

/*
 * detached_mount_lock() - the same mount, its attributes locked: root in a container's user namespace can no longer
 * remount read-only, nosuid, nodev and noexec away.
 *
 * How: the kernel locks the attributes of every mount that a less privileged user namespace gets with its copy of a
 * mount namespace, and a clone of such a mount keeps its locks (docs/KERNEL.md#read-only). So a child
 * puts the mount into a private mount namespace of the node's, creates a user namespace, copies the mount namespace
 * into it and clones the copy. Any user namespace will do. It is a new one, not the container's, in which the
 * container's root could stop the child or take its descriptors away (prlimit(2)). Seen on 6.18 and 6.1. When it was
 * the container's, open_tree failed with EMFILE in 335 of 480 calls of mount-batch while a process with the ids of the
 * container's root set RLIMIT_NOFILE of every process to 0, and in none of 3,200 calls, eight at a time, without it.
 *
 * Needs:   CAP_SYS_ADMIN. Errors: ENOSPC user.max_user_namespaces is reached.
 * Returns: the locked mount's descriptor, owned by the caller; mount_fd stays the caller's.
 */
int detached_mount_lock(int mount_fd, bool directory, bool recursive, struct error *error);

/*
 * detached_mount_lock_here() - the same for a directory, in a process that makes nothing more. scratch: it is in a
 * scratch namespace (scratch_namespace.h).
 */
int detached_mount_lock_here(int mount_fd, bool scratch, struct error *error);

#endif
