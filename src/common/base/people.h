/* SPDX-License-Identifier: Apache-2.0 */
/*
 * people.h - a reply for people: lines and tables, made of the JSON reply as a list of forms says.
 *
 * A path, "mount.container.id", leads to a member; over an array it leads to those of all its elements, with commas
 * between them; "uses.pod/container" is the first that each element has. "a|b" is the first that is there. A "%" at the
 * end means bytes: 10G; a "@" a time in seconds since 1970, of which the age is shown: 5m. "" is the value itself.
 */
#ifndef FLEXGRAFT_BASE_PEOPLE_H
#define FLEXGRAFT_BASE_PEOPLE_H

#include <jansson.h>
#include <stddef.h>

struct people_column {
        const char *head; /* NULL ends them */
        const char *path;
};

/* All forms that apply are printed, in their order. */
struct people_form {
        const char *when; /* paths with commas: each is there, and neither false nor empty; "!" before one: it is not */
        const char *rows; /* a path: of the elements of this array, and what is below is of each; NULL: of the reply */
        const char *line; /* "mounted {mount.source}"; NULL: a table */
        const struct people_column *columns;
};

/* people_say() - print a reply on standard output; a NULL row of forms ends them. Returns 0 or negative errno. */
int people_say(const struct people_form *forms, const json_t *reply);

/* people_complain() - print a failure on standard error, with its hint. */
void people_complain(const char *program, const json_t *reply);

/* ---- a table for people: a line of heads, and a line for each row, its cells as wide as the widest */

#define TABLE_COLUMNS_MAX 16

/* The text of one cell. What a terminal would take for a command is replaced afterwards. */
typedef void table_cell(const void *argument, size_t row, size_t column, char *ret_text, size_t size);

/* table_say() - print it. Returns 0 or negative errno. */
int table_say(const char *const *heads, size_t columns, size_t rows, table_cell *put, const void *argument);

#endif
