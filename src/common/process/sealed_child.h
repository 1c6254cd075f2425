/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sealed_child.h - run one function that must enter a container's user namespace; bring back one fd or one error.
 *
 * A process in there can be stopped by container root, and traced if anything makes it dumpable. So: a child with
 * memory of its own, holding only the descriptors it was given, which lives for a few system calls, never executes
 * anything, and dies with its parent.
 */
#ifndef FLEXGRAFT_PROCESS_SEALED_CHILD_H
#define FLEXGRAFT_PROCESS_SEALED_CHILD_H

#include <stddef.h>

#include "base/error.h"

/* Returns a descriptor, or negative errno with the error filled. */
typedef int sealed_child_function(void *argument, struct error *error);

/*
 * sealed_child_run() - run function(argument) in a sealed child that keeps these descriptors alone (at most 80).
 *
 * Returns: the descriptor that the function returned, owned by the caller. Errors: the function's; EPROTO when the
 *          child died (container root may kill it).
 */
int sealed_child_run(sealed_child_function *function, void *argument, const int *keep_fds, size_t keep_count,
                     struct error *error);

/*
 * sealed_child_run_attended() - the same; once the child has answered, and while its process is not yet waited for and its
 * pid means it alone, attendant(pid, argument) does from outside what the child may not. Its failure is the whole's.
 */
typedef int sealed_child_attendant(int pid, void *argument, struct error *error);
int sealed_child_run_attended(sealed_child_function *function, sealed_child_attendant *attendant, void *argument,
                              const int *keep_fds, size_t keep_count, struct error *error);

#endif
