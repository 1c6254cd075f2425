/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bpf_machine.h - run a device program of a control group here, to learn what it answers. The kernel runs such programs
 * only when a device is opened (BPF_PROG_TEST_RUN refuses their type).
 */
#ifndef FLEXGRAFT_CONTAINER_BPF_MACHINE_H
#define FLEXGRAFT_CONTAINER_BPF_MACHINE_H

#include <linux/bpf.h>
#include <stdint.h>

/*
 * bpf_machine_run() - whether the program allows that access (BPF_DEVCG_ACC_*) to a block device (makedev()).
 *
 * Returns: 1 allowed; 0 denied; -1 unknown: the program has other instructions than loads of the context, arithmetic
 * and jumps, or does not end.
 */
int bpf_machine_run(const struct bpf_insn *program, uint32_t count, uint32_t access, uint64_t device);

#endif
