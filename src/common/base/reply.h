/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reply.h - the one JSON object on standard output.
 */
#ifndef FLEXGRAFT_BASE_REPLY_H
#define FLEXGRAFT_BASE_REPLY_H

#include <jansson.h>

enum exit_status { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_NOT_UNDERSTOOD = 2 };

/*
 * reply_say() - print it as one line; takes the reference.
 * Returns: exit_status; EXIT_FAILED when it cannot be written, or when memory runs out (then that is printed).
 */
int reply_say(json_t *reply, int exit_status);

/* reply_printable() - a JSON string of any bytes: in invalid UTF-8, bytes beyond ASCII become question marks. */
json_t *reply_printable(const char *text);

#endif
