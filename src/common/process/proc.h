/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proc.h - facts from /proc about a process and the running kernel.
 */
#ifndef FLEXGRAFT_PROCESS_PROC_H
#define FLEXGRAFT_PROCESS_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/* proc_open() - the directory of a process in /proc (O_PATH). Returns a descriptor or negative errno. */
int proc_open(pid_t pid);

/*
 * proc_start_time() - when the process of a procfs directory started, in clock ticks since boot (proc(5), field
 * 22 of stat), and ret_pid, its number in that procfs. Returns 0 or negative errno; ESRCH when it has ended.
 */
int proc_start_time(int proc_fd, uint64_t *ret_start_time, pid_t *ret_pid);

/* proc_parent() - the parent of the process of a procfs directory. Returns 0 or negative errno. */
int proc_parent(int proc_fd, pid_t *ret_parent);

/*
 * proc_status() - /proc/PID/status of a thread by its number, cut to the size of the buffer. Returns whether there was
 * anything to read.
 */
bool proc_status(pid_t thread, char *ret_text, size_t size);

/*
 * proc_boot_id() - the running kernel's boot id, 36 characters and a terminator. Read once: later this process may be in
 * a container's mount namespace, with another /proc. Returns 0 or negative errno.
 */
#define PROC_BOOT_ID_SIZE 37
int proc_boot_id(char *ret_boot_id);

/*
 * proc_own_namespace() - a namespace of this process, as it was when first asked: st_dev and st_ino say which. Returns 0
 * or negative errno.
 */
enum own_namespace { OWN_MOUNTS, OWN_PIDS, OWN_USERS };
int proc_own_namespace(enum own_namespace which, struct stat *ret_st);

/*
 * proc_pid_namespace() - the inode number of this process's pid namespace: in another one, a pid means another process.
 * A number that is used again is harmless, because with a pid namespace every process in it has ended. Read once.
 *
 * Returns: 0 or negative errno; EXDEV when /proc shows another pid namespace than this process's.
 */
int proc_pid_namespace(uint64_t *ret_inode);

/*
 * proc_check_own() - whether an open file or directory, O_PATH or not, is of the /proc that was there when this was first asked: in the
 * mount namespace of a container, which a worker enters, that of its root is there, or anything else. First asked where this
 * process began. Returns 0 or negative errno; EXDEV it is another.
 */
int proc_check_own(int fd);

/* proc_pid_namespace_of() - that of the procfs which a process's directory lies in. Returns 0 or negative errno. */
int proc_pid_namespace_of(int proc_fd, uint64_t *ret_inode);

#endif
