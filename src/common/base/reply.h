/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reply.h - the one JSON object on standard output, or what people see in its place.
 */
#ifndef FLEXGRAFT_BASE_REPLY_H
#define FLEXGRAFT_BASE_REPLY_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/people.h"

enum exit_status { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_NOT_UNDERSTOOD = 2 };

/*
 * reply_say() - print it as one line of JSON, or for people; takes the reference.
 * Returns: exit_status; EXIT_FAILED when it cannot be written, or when memory runs out (then that is printed).
 */
int reply_say(json_t *reply, int exit_status);

/* reply_to_people() - print replies as lines and tables from now on, and failures on standard error; NULL: as JSON. */
void reply_to_people(const struct people_form *forms);

/* reply_is_for_people() - whether it was called so: then also what has a table of its own prints that. */
bool reply_is_for_people(void);

/*
 * reply_say_list() - as one line of JSON, with a key more at its end: an array of count items. Each item is freed as
 * soon as it is text, so that thousands need no more memory than their text. item() returns NULL where there is no
 * memory.
 */
typedef json_t *reply_item(const void *argument, size_t i);
int reply_say_list(json_t *reply, const char *key, size_t count, reply_item *item, const void *argument,
                   int exit_status);

/* reply_begin() - the program that will reply, and that it begins now. Borrowed. */
void reply_begin(const char *program);

/* reply_observe() - call observer() with each reply that was printed after reply_begin(), and how long that took. */
typedef void reply_observer(const char *program, uint64_t took_us, const json_t *reply);
void reply_observe(reply_observer *observer);

/* reply_printable() - a JSON string of any bytes: in invalid UTF-8, bytes beyond ASCII become question marks. */
json_t *reply_printable(const char *text);

#endif
