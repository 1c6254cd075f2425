/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_cgroup.h - what a container's control group lets it do with a block device: version 1 and version 2.
 */
#ifndef FLEXGRAFT_DEVICE_CGROUP_H
#define FLEXGRAFT_DEVICE_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "container.h"
#include "error.h"

/*
 * device_cgroup_allow() - reading (and with writes, writing) this device is allowed; making a node of it is not.
 *
 * Runs in: the node's mount namespace, with the control groups at /sys/fs/cgroup as everywhere.
 * Needs:   CAP_SYS_ADMIN.
 * Takes:   device, makedev().
 * Errors:  EPERM a control group above denies it, or others live in the same one, whom it is not ours to allow
 *          anything; those of device_program_change().
 */
int device_cgroup_allow(const struct container *container, uint64_t device, bool writes, struct error *error);

/*
 * device_cgroup_forbids() - whether allowing it would change anything in version 1, where nobody can tell later who
 * allowed it.
 */
bool device_cgroup_forbids(const struct container *container, uint64_t device, bool writes);

/* device_cgroup_forbid() - take it back; with version1 also there. What is open already stays open. */
int device_cgroup_forbid(const struct container *container, uint64_t device, bool version1, struct error *error);

#endif
