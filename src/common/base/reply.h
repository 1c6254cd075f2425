/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reply.h - the one JSON object on standard output.
 */
#ifndef FLEXGRAFT_BASE_REPLY_H
#define FLEXGRAFT_BASE_REPLY_H

#include <jansson.h>

enum exit_status { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_NOT_UNDERSTOOD = 2 };

/*
 * reply_say() - print it, whole, as one line; takes the reference.
 * Returns: exit_status; EXIT_FAILED when it cannot be written, or made for lack of memory (which is then said instead).
 */
int reply_say(json_t *reply, int exit_status);

/* reply_printable() - a string that may hold anything: bytes that are no UTF-8 become question marks. */
json_t *reply_printable(const char *text);

#endif
