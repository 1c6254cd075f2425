/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_bpf.h - the programs that decide, per control group (version 2), which devices may be opened.
 *
 * A grant is ten instructions in front of a runtime's own: "a read or a write of this block device is allowed", else
 * on to what was there. The kernel's dump of such a program can be loaded again, since its context is not translated
 * (struct bpf_cgroup_dev_ctx; seen with those of crun and runc), and a grant is known again by its instructions: so it
 * needs neither a record nor the old program to be taken back, and nothing outlives the control group.
 */
#ifndef FLEXGRAFT_CONTAINER_DEVICE_BPF_H
#define FLEXGRAFT_CONTAINER_DEVICE_BPF_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* What may be done with a device: bits. */
enum device_access { DEVICE_NONE = 0, DEVICE_READ = 1, DEVICE_WRITE = 2 };

/*
 * device_bpf_denies() - whether one of this control group's own programs denies this access to a block device, or
 * cannot be understood. Where there is no program, nothing is denied.
 *
 * Needs:   CAP_SYS_ADMIN; before Linux 6.7 CAP_NET_ADMIN, too.
 * Takes:   group_fd, its directory; group, its path for errors; device, makedev().
 */
int device_bpf_denies(int group_fd, const char *group, uint64_t device, unsigned access, bool *ret_denies,
                      struct error *error);

/*
 * device_bpf_grant() - with access, every program of this control group that denies it gets a grant; without
 * (DEVICE_NONE) those that have one for the device lose it. A grant of other access is made into this one.
 *
 * Errors:  EOPNOTSUPP a program that calls helpers or uses maps, or that the kernel does not show as it is
 *          (net.core.bpf_jit_harden), or that is attached by a link; EBUSY somebody else keeps changing it.
 */
int device_bpf_grant(int group_fd, const char *group, uint64_t device, unsigned access, struct error *error);

#endif
