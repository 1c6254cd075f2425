/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_mounted.h - what is mounted on a directory of this node, and whose it is.
 */
#ifndef FLEXGRAFT_NAMED_NODE_MOUNTED_H
#define FLEXGRAFT_NAMED_NODE_MOUNTED_H

#include "base/error.h"
#include "mount/detached.h"
#include "volume/call.h"

/*
 * node_mounted_look() - whether a directory can get a mount of the volume. One that systemd mounts when it is asked for
 * (autofs) can.
 *
 * Returns: 0, or 1: the volume is mounted there already, and its record says so.
 * Errors:  ENOENT OPERATION_FIND_TARGET, ENOTDIR; EBUSY something else is mounted there.
 */
int node_mounted_look(struct volume_call *call, const char *target, struct error *error);

/* node_mounted_check_writes() - that a mount of the volume may be written to. Errors: EROFS. */
int node_mounted_check_writes(const struct volume_call *call, struct error *error);

/*
 * node_mounted_set() - give the mount on a directory, and no other of its filesystem, other attributes. Takes: target,
 * absolute, its links resolved. Errors: EBUSY it is to be read-only, and a file of it is open for writing.
 */
int node_mounted_set(const char *target, const struct mount_attributes *attributes, struct error *error);

#endif
