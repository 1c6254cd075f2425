/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sealed_child.h - run one function inside a container's user namespace, in a child process that has nothing to steal;
 * it returns one descriptor or one error.
 *
 * The container's root can stop a process in its user namespace, and trace it if it is dumpable. So the child has its
 * own memory and only the descriptors that it needs, makes a few system calls, executes nothing, and dies with its
 * parent. Compare process/worker: a child with a time limit, for the program's own work.
 */
#ifndef FLEXGRAFT_PROCESS_SEALED_CHILD_H
#define FLEXGRAFT_PROCESS_SEALED_CHILD_H

#include <stddef.h>

#include "base/error.h"

/* Returns a descriptor, or negative errno with the error filled. */
typedef int sealed_child_function(void *argument, struct error *error);

/*
 * sealed_child_run() - run function(argument) in a child that keeps only these descriptors (at most 80).
 *
 * Returns: the descriptor that the function returned, owned by the caller. Errors: the function's; EPROTO when the
 *          child died (the container's root may kill it).
 */
int sealed_child_run(sealed_child_function *function, void *argument, const int *keep_fds, size_t keep_count,
                     struct error *error);

/*
 * sealed_child_run_attended() - the same. When the child has answered, and before it is waited for (so that its pid
 * cannot be reused), attendant(pid, argument) does from outside what the child may not do. If it fails, all fails.
 */
typedef int sealed_child_attendant(int pid, void *argument, struct error *error);
int sealed_child_run_attended(sealed_child_function *function, sealed_child_attendant *attendant, void *argument,
                              const int *keep_fds, size_t keep_count, struct error *error);

/*
 * ---- one question about data that others wrote, answered by a process without any privilege: for a program
 * that must know the answer before it drops its own.
 */

/*
 * unprivileged_ask() - run function(argument) in a child that has a copy of our memory, no open file, no capability, and
 * a filter (row "parser" of privileges/privilege_table.h) that leaves it memory and the end.
 *
 * Returns: the function's answer, 0 to 254; -1 when the child could not be started, died, or did not answer within ten
 * seconds.
 */
typedef unsigned unprivileged_function(void *argument);
int unprivileged_ask(unprivileged_function *function, void *argument);

/*
 * unprivileged_memory() - zeroes, in which the function can answer more: what it writes there is seen here, and may be
 * anything, also text without its end. It lasts as long as the program. NULL: there is none.
 */
void *unprivileged_memory(size_t size);

#endif
