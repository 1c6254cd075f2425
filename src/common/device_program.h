/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_program.h - the programs that decide, per control group (version 2), which devices may be opened.
 *
 * A grant is ten instructions in front of a runtime's own: "a read or a write of this block device is allowed", else
 * on to what was there. The kernel's dump of such a program can be loaded again, since its context is not translated
 * (struct bpf_cgroup_dev_ctx; seen with those of crun and runc), and a grant is known again by its instructions: so it
 * needs neither a record nor the old program to be taken back, and nothing outlives the control group.
 */
#ifndef FLEXGRAFT_DEVICE_PROGRAM_H
#define FLEXGRAFT_DEVICE_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "error.h"

/* device_program_find() - whether this control group has any program: where there is none, everything is allowed. */
int device_program_find(int group_fd, const char *group, bool *ret_found, struct error *error);

/*
 * device_program_change() - give all programs of this control group the grant, or take it away from them.
 *
 * Needs:   CAP_SYS_ADMIN.
 * Takes:   group_fd, its directory; group, its path for errors; device, makedev() of a block device; writes, whether
 *          it may be written, too.
 * Gives:   ret_found, as device_program_find().
 * Errors:  EOPNOTSUPP a program that calls helpers or uses maps, or that the kernel does not show as it is
 *          (net.core.bpf_jit_harden), or that is attached by a link; EBUSY somebody else keeps changing it.
 */
int device_program_change(int group_fd, const char *group, uint64_t device, bool writes, bool grant, bool *ret_found,
                          struct error *error);

#endif
