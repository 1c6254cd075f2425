/* SPDX-License-Identifier: Apache-2.0 */
/*
 * failure.h - a struct error, in words -> the reply {"status":"Failure", ...}, with a hint from the one table of hints.
 */
#ifndef FLEXGRAFT_BASE_FAILURE_H
#define FLEXGRAFT_BASE_FAILURE_H

#include "base/error.h"

/* What begins the message of every OPERATION_PARSE, in every program. */
#define FAILURE_NOT_UNDERSTOOD "the request cannot be understood: "

/* failure_say() - print the reply. message: what could not be done, and why. Returns the program's exit status. */
int failure_say(const char *message, const struct error *error);

/* failure_hint() - what to do about it, one sentence; NULL where the message is enough. */
const char *failure_hint(const struct error *error);

/* failure_exit_status() - EXIT_FAILED, or EXIT_NOT_UNDERSTOOD for a request that cannot be understood. */
int failure_exit_status(const struct error *error);

#endif
