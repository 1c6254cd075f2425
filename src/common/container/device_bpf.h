/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_bpf.h - the BPF programs that decide which devices the processes of a control group (version 2) may open.
 *
 * A grant is ten instructions in front of a runtime's program: "allow this access to this block device", otherwise
 * continue with the original program. The kernel's dump of a program can be loaded again, because the kernel does not
 * rewrite accesses to its context (struct bpf_cgroup_dev_ctx; tested with crun and runc). A grant is recognised by its
 * instructions, so that it can be removed without a record and without the old program. It ends with the control group.
 */
#ifndef FLEXGRAFT_CONTAINER_DEVICE_BPF_H
#define FLEXGRAFT_CONTAINER_DEVICE_BPF_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* Access to a device, as bits. */
enum device_access { DEVICE_NONE = 0, DEVICE_READ = 1, DEVICE_WRITE = 2 };

/*
 * device_bpf_denies() - whether a program of this control group denies this access to a block device, or cannot be
 * evaluated. Without a program nothing is denied.
 *
 * Needs:   CAP_SYS_ADMIN; before Linux 6.7 CAP_NET_ADMIN, too (docs/KERNEL.md#raw-devices).
 * Takes:   group_fd, its directory; group, its path for errors; device, makedev().
 */
int device_bpf_denies(int group_fd, const char *group, uint64_t device, unsigned access, bool *ret_denies,
                      struct error *error);

/*
 * device_bpf_grant() - add a grant to every program of this control group that denies the access; DEVICE_NONE: remove
 * the grants for the device. A grant with another access is replaced.
 *
 * Errors:  EOPNOTSUPP the program calls helpers or uses maps, or is not dumped unchanged (net.core.bpf_jit_harden), or
 * is
 *          attached by a link; EBUSY other processes keep changing it.
 */
int device_bpf_grant(int group_fd, const char *group, uint64_t device, unsigned access, struct error *error);

/*
 * bpf_machine_run() - run a program here, to learn whether it allows that access (BPF_DEVCG_ACC_*) to a block device
 * (makedev()). The kernel runs such programs only when a device is opened (BPF_PROG_TEST_RUN refuses their type).
 *
 * Returns: 1 allowed; 0 denied; -1 unknown: the program has other instructions than loads of the context, arithmetic
 * and jumps, or does not end.
 */
int bpf_machine_run(const struct bpf_insn *program, uint32_t count, uint32_t access, uint64_t device);

#endif
