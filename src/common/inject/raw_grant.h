/* SPDX-License-Identifier: Apache-2.0 */
/*
 * raw_grant.h - what a container may do with a block device, by all of our raw mounts of it together: the records say.
 */
#ifndef FLEXGRAFT_INJECT_RAW_GRANT_H
#define FLEXGRAFT_INJECT_RAW_GRANT_H

#include <stdbool.h>

#include "base/error.h"
#include "container/container.h"
#include "state/mount_record.h"
#include "state/state_dir.h"

/*
 * raw_grant_prepare() - fill record.raw_*: what this mount needs, and what version 1 control groups allowed before the
 * first mount of this device. Looks only. Errors: those of device_cgroup_look().
 */
int raw_grant_prepare(const struct state *state, const struct container *container, struct mount_record *record,
                      uint64_t device, bool writes, struct error *error);

/*
 * raw_grant_settle() - the container has what this mount and the others that are recorded need; without (included
 * false) what the others need. Errors: those of device_cgroup_set().
 */
int raw_grant_settle(const struct state *state, const struct container *container, const struct mount_record *record,
                     bool included, struct error *error);

/* raw_grant_settle_replaced() - the same for the device of what the record's mount took the place of, if any. */
int raw_grant_settle_replaced(const struct state *state, const struct container *container,
                              const struct mount_record *record, struct error *error);

#endif
