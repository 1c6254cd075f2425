/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.h - a table for people: a line of heads, and a line for each row, its cells as wide as the widest.
 */
#ifndef FLEXGRAFT_BASE_TABLE_H
#define FLEXGRAFT_BASE_TABLE_H

#include <stddef.h>

#define TABLE_COLUMNS_MAX 12

/* The text of one cell. What a terminal would take for a command is replaced afterwards. */
typedef void table_cell(const void *argument, size_t row, size_t column, char *ret_text, size_t size);

/* table_say() - print it. Returns 0 or negative errno. */
int table_say(const char *const *heads, size_t columns, size_t rows, table_cell *cell, const void *argument);

#endif
