/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker.h - run a function in a child process with a time limit.
 *
 * A path through a dead NFS mount, a FUSE filesystem that does not answer or a failing disk can block a system call
 * forever. So the program's work is done by a child; the parent watches the clock and always answers.
 */
#ifndef FLEXGRAFT_PROCESS_WORKER_H
#define FLEXGRAFT_PROCESS_WORKER_H

#include <stdint.h>

#include "base/error.h"

typedef int worker_function(void *argument, struct error *error);

/*
 * worker_dies_with_parent() - have the kernel kill this process when its parent ends; exit if it has ended already.
 * Call it again after every change of ids, at which the kernel clears the setting (commit_creds()). Takes parent_pid,
 * which the parent read with getpid() before it created this process.
 */
void worker_dies_with_parent(int parent_pid);

/*
 * worker_run() - run function(argument, error) in a child that shares memory and descriptors with this process, but not
 * the working directory, root and mount namespace, so that it may enter a container's. Wait for it; kill it when the
 * time is over.
 *
 * Sharing memory makes the child as cheap as a thread (no page tables are copied), and the caller can see and undo what
 * a killed child left. Unlike a thread, it can be left behind in an uninterruptible sleep while the program exits. The
 * function must leave memory in a state in which it may be killed at any time; a killed child never runs again, so
 * afterwards only the caller uses the memory.
 *
 * Returns: the function's result. Errors: the function's; ETIMEDOUT after deadline_ms (clock_now_ms()'s clock);
 *          ECANCELED when a signal killed the child; the error names it.
 */
int worker_run(worker_function *function, void *argument, int64_t deadline_ms, struct error *error);

#endif
