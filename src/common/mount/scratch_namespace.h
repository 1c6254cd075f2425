/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scratch_namespace.h - a private mount namespace with an empty tmpfs, to attach detached mounts to for a moment.
 */
#ifndef FLEXGRAFT_MOUNT_SCRATCH_NAMESPACE_H
#define FLEXGRAFT_MOUNT_SCRATCH_NAMESPACE_H

#include <stdbool.h>

#include "base/error.h"

/*
 * scratch_namespace_enter() - enter a private copy of the node's mount namespace. The working directory becomes a new
 * tmpfs in it (nosuid, nodev), which covers /dev; other absolute paths are still the node's.
 *
 * Runs in: a child of the node's user namespace (worker_run_apart(), process/sealed_child): there is no way back, and
 *          its mounts disappear with the child, but for clones passed out.
 * Needs:   CAP_SYS_ADMIN.
 */
int scratch_namespace_enter(struct error *error);

/* scratch_namespace_attach() - attach a mount to a name in the tmpfs, a directory or file that is created. */
int scratch_namespace_attach(int mount_fd, const char *name, bool directory, struct error *error);

/*
 * scratch_namespace_attach_first() - both at once, for one mount: ret_path is where it is, for as long as the working
 * directory stays. A directory needs no tmpfs.
 */
int scratch_namespace_attach_first(int mount_fd, bool directory, const char **ret_path, struct error *error);

/*
 * scratch_namespace_uncover() - unmount what is on an absolute path, if it can be; no link of a container is followed. It
 * must be nobody's peer.
 * scratch_namespace_unmount() - the same of a name in the tmpfs. Returns 0 or negative errno: EBUSY a mount is on it, or
 * a descriptor of it is open.
 */
void scratch_namespace_uncover(const char *path);
int scratch_namespace_unmount(const char *name);

/*
 * scratch_namespace_count() - how many mounts are on the tmpfs, also those that mountinfo has no line for: a directory
 * that was renamed out of the mount that it was in has lost its path, and what is mounted below it is there all the same.
 * Returns: the count, or negative errno: ENOSYS before Linux 6.8.
 */
int scratch_namespace_count(void);

#endif
