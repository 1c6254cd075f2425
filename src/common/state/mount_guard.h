/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mount_guard.h - the loop devices that containers have in place of raw devices (block/loop_guard.h), by the record of the
 * mount: its own, and those of a mount that it was replacing.
 */
#ifndef FLEXGRAFT_STATE_MOUNT_GUARD_H
#define FLEXGRAFT_STATE_MOUNT_GUARD_H

#include <stdbool.h>

#include "state/mount_record.h"

/* mount_guard_exists() - whether there is one. */
bool mount_guard_exists(const struct mount_record *record);

/* mount_guard_release() - loop_guard_release() of each; the first that does not return 0 is the last. */
int mount_guard_release(const struct mount_record *record, struct error *error);

#endif
