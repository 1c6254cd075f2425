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

/* raw_grant_check_alone() - that no other container uses the device, if one of them writes to it. Errors: EBUSY. */
int raw_grant_check_alone(const char *state_dir, const struct mount_record *record, uint64_t device, bool writes,
                          struct error *error);

/* raw_grant_check_none() - that no container may write to a device whose filesystem is to be mounted. Errors: EBUSY. */
int raw_grant_check_none(const char *state_dir, const struct mount_record *record, uint64_t device,
                         struct error *error);

/*
 * raw_grant_find_guard() - the loop device that the container has for a device already (block/loop_guard), held.
 *
 * Two that are written to would have two caches.
 *
 * Gives:   ret_number, its number, also where it could not be held.
 * Returns: a descriptor of it, owned by the caller; -ENOENT, without a message: there is none.
 */
int raw_grant_find_guard(const char *state_dir, const struct mount_record *record, uint64_t device, bool writes,
                         uint64_t *ret_number, struct error *error);

/*
 * raw_grant_prepare() - set record.raw_writes and raw_before: the access that this mount needs, and the access that version 1 control
 * groups allowed before the first mount of this device. Changes nothing. Errors: those of device_cgroup_look().
 */
int raw_grant_prepare(const struct state *state, const struct container *container, struct mount_record *record,
                      bool writes, struct error *error);

/*
 * raw_grant_settle() - allow the container the access that the recorded mounts need: this one (if included) and the
 * others. Where none is left, detach the device's loop devices.
 *
 * Returns: 0; 1 a process still has the device open: the record mount_record_removed_id() says so. Errors: those of
 * device_cgroup_set().
 */
int raw_grant_settle(const struct state *state, const struct container *container, const struct mount_record *record,
                     bool included, struct error *error);

/* raw_grant_release() - the last part of that, for a device that nothing else needs. Returns: likewise. */
int raw_grant_release(const struct state *state, const struct mount_record *record, struct error *error);

/*
 * raw_grant_release_all() - the same for a container that has ended, also for the device of a mount that the record's
 * was replacing.
 */
int raw_grant_release_all(const struct state *state, const struct mount_record *record, struct error *error);

/*
 * raw_grant_settle_replaced() - the same for the device of the mount that the record's mount replaced, if it had one.
 */
int raw_grant_settle_replaced(const struct state *state, const struct container *container,
                              const struct mount_record *record, struct error *error);

#endif
