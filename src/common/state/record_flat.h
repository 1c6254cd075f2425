/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_flat.h - records of a flat table (state/record_table.h), which are many: read and written without a tree of JSON
 * values, and kept in memory without the room that their longest texts would need.
 */
#ifndef FLEXGRAFT_STATE_RECORD_FLAT_H
#define FLEXGRAFT_STATE_RECORD_FLAT_H

#include <stdbool.h>
#include <stddef.h>

#include "state/record_table.h"

/*
 * record_flat_read() - read a text as record_write() writes it: its keys in the order of the table, and nothing beside
 * them. false for any other text, sound JSON or not, of which record_read() decides: texts with a backslash or beyond
 * ASCII are among them. ret_record: all zeroes; what is read of a text that is refused stays in it.
 */
bool record_flat_read(const struct record_table *table, const char *text, size_t length, void *ret_record);

/*
 * record_flat_write() - the text of a record, byte for byte as its tree of JSON values would be written. Returns how
 * long it is; 0: it does not fit, or a text has a quote, a backslash, or what is not printable ASCII.
 */
size_t record_flat_write(const struct record_table *table, const void *record, char *buffer, size_t size);

/*
 * record_flat_pack() - copy the fields of a record, each text as long as it is. Returns how many bytes that are.
 * buffer: of at least table->size bytes. record_flat_unpack() - the record again; what is in no row of the table stays
 * as it is.
 */
size_t record_flat_pack(const struct record_table *table, const void *record, char *buffer);
void record_flat_unpack(const struct record_table *table, const char *packed, void *ret_record);

/* record_flat_text() - a text of a packed record, by its key. */
const char *record_flat_text(const struct record_table *table, const char *packed, const char *key);

#endif
