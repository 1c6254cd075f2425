/* SPDX-License-Identifier: Apache-2.0 */
/*
 * raw_grant.h - a container's access to a block device: what all recorded raw mounts of it need together.
 */
#ifndef FLEXGRAFT_INJECT_RAW_GRANT_H
#define FLEXGRAFT_INJECT_RAW_GRANT_H

#include <stdbool.h>

#include "base/error.h"
#include "container/container.h"
#include "state/mount_record.h"
#include "state/state_dir.h"

/*
 * raw_grant_prepare() - set record.raw_*: the access that this mount needs, and the access that version 1 control
 * groups allowed before the first mount of this device. Changes nothing. Errors: those of device_cgroup_look().
 */
int raw_grant_prepare(const struct state *state, const struct container *container, struct mount_record *record,
                      uint64_t device, bool writes, struct error *error);

/*
 * raw_grant_settle() - allow the container the access that the recorded mounts need: this one (if included) and the
 * others. Errors: those of device_cgroup_set().
 */
int raw_grant_settle(const struct state *state, const struct container *container, const struct mount_record *record,
                     bool included, struct error *error);

/*
 * raw_grant_settle_replaced() - the same for the device of the mount that the record's mount replaced, if it had one.
 */
int raw_grant_settle_replaced(const struct state *state, const struct container *container,
                              const struct mount_record *record, struct error *error);

#endif
