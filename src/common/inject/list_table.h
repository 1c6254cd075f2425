/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list_table.h - the mounts that mount-list found, as a table for people.
 */
#ifndef FLEXGRAFT_INJECT_LIST_TABLE_H
#define FLEXGRAFT_INJECT_LIST_TABLE_H

#include "inject/listing.h"

/* list_table_say() - print it, a line per mount. Returns the program's exit status. */
int list_table_say(const struct listing *listing);

#endif
