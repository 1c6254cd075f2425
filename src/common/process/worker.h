/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker.h - a part of our own work that may hang, done by a process that can be given up on.
 *
 * A path through a dead NFS mount, a silent FUSE filesystem or a failing disk can block a system call for ever. So the
 * program's work runs in a child and the parent keeps the clock, and always answers.
 */
#ifndef FLEXGRAFT_PROCESS_WORKER_H
#define FLEXGRAFT_PROCESS_WORKER_H

#include <stdint.h>

#include "base/error.h"

typedef int worker_function(void *argument, struct error *error);

/*
 * worker_dies_with_parent() - SIGKILL for this process when its parent ends; at once if it has ended already. To be
 * said again after every change of ids, which makes the kernel forget it (commit_creds()). Needs parent_pid, as the
 * parent knew it of itself before it made this process.
 */
void worker_dies_with_parent(int parent_pid);

/*
 * worker_run() - run function(argument, error) in a child that shares our memory and descriptors but neither our
 * working directory and root nor our mount namespace, so that it may enter a container's; wait for it, or kill it.
 *
 * Sharing memory makes the child as cheap as a thread (no page tables are copied), and what it left behind when it was
 * killed can be seen and undone; unlike a thread it can be abandoned in an uninterruptible sleep while we exit.
 * The function must not allocate memory that outlives it in a state it cannot be killed in; a child that had to be
 * killed never runs again, so nothing but this caller touches the memory afterwards.
 *
 * Returns: the function's own result. Errors: the function's; ETIMEDOUT after deadline_ms (on clock_now_ms()'s clock);
 *          ECANCELED when the child died of a signal, named in the error.
 */
int worker_run(worker_function *function, void *argument, int64_t deadline_ms, struct error *error);

#endif
