/* SPDX-License-Identifier: Apache-2.0 */
/*
 * namespace.h - enter namespaces. The only room that calls setns and unshare.
 */
#ifndef FLEXGRAFT_PROCESS_NAMESPACE_H
#define FLEXGRAFT_PROCESS_NAMESPACE_H

#include "base/error.h"

/*
 * namespace_enter_mounts() - this process's mount namespace, root and working directory become the container's.
 *
 * Runs in: a worker (process/worker.h); a process that shares them with another is refused by the kernel (EINVAL).
 * Needs:   CAP_SYS_ADMIN and CAP_SYS_CHROOT. We stay in the node's user namespace, so container root cannot trace us.
 * After:   nothing may be executed or loaded, no name looked up, and no path of the container followed except beneath
 *          a descriptor with openat2: glibc would run the container's NSS modules as the node's root.
 * Errors:  EPERM, EINVAL; ESRCH cannot happen with a namespace's own descriptor.
 */
int namespace_enter_mounts(int mnt_ns_fd, const char *container, struct error *error);

/* namespace_open_own_mounts() - the mount namespace we are in, to come back to. Returns its fd, owned by the caller. */
int namespace_open_own_mounts(struct error *error);

/*
 * namespace_enter_user() - enter the container's user namespace as whoever we are: all capabilities in there and none
 * on the node; not dumpable. Runs in: a short-lived, sealed child (process/sealed_child.h).
 */
int namespace_enter_user(int user_ns_fd, const char *container, struct error *error);

/*
 * namespace_enter_network() - sockets, and the filesystems of a network that are begun from here on, are the
 * container's network namespace's. Needs CAP_SYS_ADMIN, there and here. Runs in: a short-lived child.
 */
int namespace_enter_network(int net_ns_fd, const char *container, struct error *error);

/*
 * namespace_become_root_of() - enter the container's user namespace and be its root there.
 *
 * Runs in: a short-lived, sealed child (process/sealed_child.h), which keeps only the descriptors it needs.
 * After:   all capabilities in the container's user namespace and none on the node; still not dumpable, so that
 *          container root may stop us but not trace us.
 * Errors:  EPERM; EINVAL when the namespace has no id 0.
 */
int namespace_become_root_of(int user_ns_fd, const char *container, struct error *error);

/* namespace_new_mounts() - a private copy of the current mount namespace, owned by the current user namespace. */
int namespace_new_mounts(struct error *error);

/* namespace_new_hostname() - a host name of at most 64 bytes that nobody else has. Runs in a sealed child. */
int namespace_new_hostname(const char *name, struct error *error);

/* namespace_new_user() - a new user namespace in which nothing is mapped yet. Runs in a sealed child. */
int namespace_new_user(struct error *error);

#endif
