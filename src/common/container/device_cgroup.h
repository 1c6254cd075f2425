/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_cgroup.h - what a container's control group lets it do with a block device: version 1 and version 2.
 */
#ifndef FLEXGRAFT_CONTAINER_DEVICE_CGROUP_H
#define FLEXGRAFT_CONTAINER_DEVICE_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "container/container.h"
#include "container/device_bpf.h"

/*
 * device_cgroup_look() - what version 1 allows of the device now, and whether a group denies it whom it is not ours to
 * change.
 *
 * Runs in: the node's mount namespace, with the control groups at /sys/fs/cgroup as everywhere.
 * Needs:   CAP_SYS_ADMIN; before Linux 6.7 CAP_NET_ADMIN, too.
 * Takes:   device, makedev(); access, of enum device_access.
 * Gives:   ret_version1, the same; all where version 1 is not in use.
 * Errors:  EPERM a group that denies it is not the container's alone, or lies above its own.
 */
int device_cgroup_look(const struct container *container, uint64_t device, unsigned access, unsigned *ret_version1,
                       struct error *error);

/*
 * device_cgroup_set() - make it so: of our doing the container has this access to the device and no other; in version
 * 1, where rules do not tell whose they are, it has kept what it had before. Making a node of the device is never
 * allowed. What is open already stays open.
 *
 * Takes:   access, what our mounts need; before, what version 1 allowed before the first of them.
 * Errors:  those of device_bpf_grant(); EPERM a control group above denies it.
 */
int device_cgroup_set(const struct container *container, uint64_t device, unsigned access, unsigned before,
                      struct error *error);

#endif
