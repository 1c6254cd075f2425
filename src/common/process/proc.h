/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proc.h - facts from /proc about a process and the running kernel.
 */
#ifndef FLEXGRAFT_PROCESS_PROC_H
#define FLEXGRAFT_PROCESS_PROC_H

#include <stdint.h>
#include <sys/types.h>

/*
 * proc_start_time() - when the process of a procfs directory started, in clock ticks since boot (proc(5), field
 * 22 of stat), and ret_pid, its number in that procfs. Returns 0 or negative errno; ESRCH when it has ended.
 */
int proc_start_time(int proc_fd, uint64_t *ret_start_time, pid_t *ret_pid);

/* proc_boot_id() - the running kernel's boot id, 36 characters and a terminator. Returns 0 or negative errno. */
#define PROC_BOOT_ID_SIZE 37
int proc_boot_id(char *ret_boot_id);

#endif
