/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unprivileged.h - one question about data that others wrote, answered by a process without any privilege: for a program
 * that must know the answer before it drops its own.
 */
#ifndef FLEXGRAFT_PROCESS_UNPRIVILEGED_H
#define FLEXGRAFT_PROCESS_UNPRIVILEGED_H

#include <stddef.h>

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
