/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outcome.h - what a program for a type of mount tells: a line on standard error, and the exit status as in mount(8).
 */
#ifndef FLEXGRAFT_MOUNT_TYPES_OUTCOME_H
#define FLEXGRAFT_MOUNT_TYPES_OUTCOME_H

#include "arguments.h"
#include "base/error.h"
#include "process/program.h"

#define OUTCOME_STATUS                                                                                                 \
        "Exit status, as mount(8) has it: 0 done, 1 wrong call or not root, 2 the system failed (memory), 16 utab "    \
        "could not be written, 32 it failed."

/* outcome_say() - "PROGRAM: TARGET: TEXT." on standard error. */
void outcome_say(const char *program, const char *target, const char *format, ...)
        __attribute__((format(printf, 3, 4)));

/* outcome_failure() - tell a failure. Returns the exit status. */
int outcome_failure(const char *program, const struct arguments *arguments, const struct error *error);

/* outcome_mounted_already() - tell that it is mounted there. Returns the exit status. */
int outcome_mounted_already(const char *program, const struct arguments *arguments);

/*
 * outcome_of() - the whole of such a program that writes utab: begin, act, end; a failure to begin is told here.
 *
 * Takes: act, which runs with the program's privileges, tells its failure itself, and returns the exit status.
 * Returns: the exit status.
 */
int outcome_of(const struct program *program, const struct arguments *arguments, int argc, char **argv,
               int (*act)(struct error *error));

#endif
