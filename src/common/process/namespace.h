/* SPDX-License-Identifier: Apache-2.0 */
/*
 * namespace.h - enter and create namespaces. Only this module calls setns and unshare.
 */
#ifndef FLEXGRAFT_PROCESS_NAMESPACE_H
#define FLEXGRAFT_PROCESS_NAMESPACE_H

#include "base/error.h"

/*
 * namespace_enter_mounts() - this process's mount namespace, root and working directory become the container's.
 *
 * Runs in: a worker (process/worker.h). If another process shares root and working directory, the kernel refuses
 *          (EINVAL; docs/KERNEL.md#targets-in-a-container).
 * Needs:   CAP_SYS_ADMIN and CAP_SYS_CHROOT. The process stays in the node's user namespace, so that the container's
 *          root cannot trace it.
 * After:   execute and load nothing, look up no user or host name (glibc would run the container's NSS modules as the
 *          node's root; docs/KERNEL.md#name-resolution-and-loading), and follow paths of the container only with
 *          openat2 beneath a descriptor.
 * Errors:  EPERM, EINVAL; ESRCH cannot happen with a namespace's own descriptor.
 */
int namespace_enter_mounts(int mnt_ns_fd, const char *container, struct error *error);

/* namespace_open_own_mounts() - the current mount namespace, to return to it. Returns its fd, owned by the caller. */
int namespace_open_own_mounts(struct error *error);

/*
 * namespace_enter_user() - enter the container's user namespace with the current ids: all capabilities in it, none on
 * the node; not dumpable (docs/KERNEL.md#a-helper-inside-a-containers-user-namespace). Runs in: a short-lived, sealed
 * child (process/sealed_child.h).
 */
int namespace_enter_user(int user_ns_fd, const char *container, struct error *error);

/*
 * namespace_enter_network() - sockets and network filesystems that this process creates now belong to the container's
 * network namespace. Needs CAP_SYS_ADMIN, on the node and over that namespace. Runs in: a short-lived child.
 */
int namespace_enter_network(int net_ns_fd, const char *container, struct error *error);

/*
 * namespace_become_root_of() - enter the container's user namespace as its root.
 *
 * Runs in: a short-lived, sealed child (process/sealed_child.h), which keeps only the descriptors it needs.
 * After:   all capabilities in the container's user namespace, none on the node; still not dumpable, so that the
 *          container's root may stop this process but not trace it.
 * Errors:  EPERM; EINVAL when the namespace has no id 0.
 */
int namespace_become_root_of(int user_ns_fd, const char *container, struct error *error);

/* namespace_new_mounts() - a private copy of the current mount namespace, owned by the current user namespace. */
int namespace_new_mounts(struct error *error);

/* namespace_new_hostname() - a host name of at most 64 bytes in a new UTS namespace. Runs in a sealed child. */
int namespace_new_hostname(const char *name, struct error *error);

/* namespace_new_user() - a new user namespace without mappings. Runs in a sealed child. */
int namespace_new_user(struct error *error);

#endif
