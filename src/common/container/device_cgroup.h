/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_cgroup.h - a container's access to a block device, by its control groups: version 1 and version 2.
 */
#ifndef FLEXGRAFT_CONTAINER_DEVICE_CGROUP_H
#define FLEXGRAFT_CONTAINER_DEVICE_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "container/container.h"
#include "container/device_bpf.h"

/*
 * device_cgroup_look() - find out what version 1 allows now, and whether a group denies the device that must not be
 * changed.
 *
 * Runs in: the node's mount namespace, with the control groups mounted at /sys/fs/cgroup.
 * Needs:   CAP_SYS_ADMIN; before Linux 6.7 CAP_NET_ADMIN, too.
 * Takes:   device, makedev(); access, of enum device_access.
 * Gives:   ret_version1, an access; all when version 1 is not used.
 * Errors:  EPERM a group that denies it has other processes than the container's, or is above the container's group.
 */
int device_cgroup_look(const struct container *container, uint64_t device, unsigned access, unsigned *ret_version1,
                       struct error *error);

/*
 * device_cgroup_set() - allow the container exactly this access to the device. In version 1, where a rule does not show
 * its origin, access that it had before stays. Creating a node of the device is never allowed. Open files stay open.
 *
 * Takes:   access, for all mounts of flexgraft; before, what version 1 allowed before the first of them.
 * Errors:  those of device_bpf_grant(); EPERM a control group above denies it.
 */
int device_cgroup_set(const struct container *container, uint64_t device, unsigned access, unsigned before,
                      struct error *error);

#endif
