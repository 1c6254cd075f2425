/* SPDX-License-Identifier: Apache-2.0 */
/* device_mount.h - the filesystem on a block device as a detached mount: for the kinds of mounts that have a device. */
#ifndef FLEXGRAFT_INJECT_KINDS_DEVICE_MOUNT_H
#define FLEXGRAFT_INJECT_KINDS_DEVICE_MOUNT_H

#include <stdbool.h>

#include "inject/injection.h"

/* device_mount_never_writes() - whether filesystems of a type are always read-only. */
bool device_mount_never_writes(const char *fs_type);

/*
 * device_mount_find() - the device of the request, a path or a tag, which the policy allows. A path is asked of the policy
 * before it is opened; a tag has to be looked for first. Gives: injection: device, record.origin. Errors: EACCES; those of
 * block_device_find() and block_device_check_node().
 */
int device_mount_find(struct injection *injection, struct error *error);

/*
 * device_mount_make() - a source_kind's make(): a superblock on injection->device, or that which is there already, as a
 * detached mount.
 *
 * Takes:  injection: device, of number record.disk; fs_type.
 * Errors: EBUSY it is mounted with other options, or a container has it raw; EROFS; ESTALE its path leads to another
 *         device by now; those of fsopen(), fsconfig() and fsmount().
 */
int device_mount_make(struct injection *injection, bool owned, struct error *error);

/*
 * device_mount_check_recorded() - a source_kind's check_recorded(): that no container has the device raw. Errors: EBUSY.
 */
int device_mount_check_recorded(struct injection *injection, struct error *error);

#endif
