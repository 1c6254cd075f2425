/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scratch_namespace.h - a mount namespace of our own with an empty tmpfs, where what has to be attached somewhere for a moment is.
 */
#ifndef FLEXGRAFT_MOUNT_SCRATCH_NAMESPACE_H
#define FLEXGRAFT_MOUNT_SCRATCH_NAMESPACE_H

#include <stdbool.h>

#include "base/error.h"

/*
 * scratch_namespace_enter() - a private copy of the node's mount namespace, from which nothing travels back; our working directory
 * is a fresh tmpfs in it (nosuid, nodev). Absolute paths are the node's still.
 *
 * Runs in: a sealed child (process/sealed_child.h) of the node's user namespace: there is no way back, and what is mounted here
 *          goes with the child, but for what was cloned and passed out.
 * Needs:   CAP_SYS_ADMIN.
 */
int scratch_namespace_enter(struct error *error);

/* scratch_namespace_attach() - a detached mount at a name of the stage, which is made: a directory or a file. */
int scratch_namespace_attach(int mount_fd, const char *name, bool directory, struct error *error);

#endif
