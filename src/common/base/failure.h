/* SPDX-License-Identifier: Apache-2.0 */
/*
 * failure.h - a struct error, in words -> the reply {"status":"Failure", ...}.
 */
#ifndef FLEXGRAFT_BASE_FAILURE_H
#define FLEXGRAFT_BASE_FAILURE_H

#include "base/error.h"

/* failure_say() - print it, with a hint. message: what could not be done, and why. Returns the program's exit status.
 */
int failure_say(const char *message, const struct error *error);

/* failure_exit_status() - EXIT_FAILED, or EXIT_NOT_UNDERSTOOD. */
int failure_exit_status(const struct error *error);

#endif
