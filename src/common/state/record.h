/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.h - records of the state directory: a table of fields per type of record, to read and to write one JSON file
 * each.
 */
#ifndef FLEXGRAFT_STATE_RECORD_H
#define FLEXGRAFT_STATE_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/file.h"
#include "state/record_table.h"
#include "state/state_dir.h"

#define RECORD_SUFFIX ".json"

/*
 * record_read() - one file.
 *
 * Gives:   ret_record, released by record_release(), also after a failure.
 * Errors:  ENOENT; EBADMSG it is damaged, or not a record of this type; EPROTONOSUPPORT it is of another version.
 */
int record_read(const struct state *state, const struct record_table *table, const char *file, void *ret_record,
                struct error *error);

/*
 * record_set_aside() - state_set_aside() of a file that record_read() has found damaged, or whose record has another name
 * than name (NULL: it may have any). It is read again with the record's lock, and stays if another process holds that,
 * or has replaced the file meanwhile.
 *
 * Gives: ret_aside, of STATE_ASIDE_SIZE bytes. Returns whether it was renamed.
 */
bool record_set_aside(const struct state *state, const struct record_table *table, const char *file, const char *name,
                      char *ret_aside);

/* record_write() - replace a file, whole. name: what the record is of, for errors. */
int record_write(const struct state *state, const struct record_table *table, const char *file, const char *name,
                 const void *record, enum file_durability durability, struct error *error);

/*
 * record_each() - every record of the directory, read into scratch, until function() returns other than 0, which is the
 * result. For a file that cannot be read record is NULL, and error says why: see record_read(). The function may remove
 * it.
 */
typedef int record_function(void *record, const char *file, void *argument, struct error *error);
int record_each(const struct state *state, const struct record_table *table, void *scratch, record_function *function,
                void *argument, struct error *error);

/* record_pass() - likewise, with one file; 0 if there is none. */
int record_pass(const struct state *state, const struct record_table *table, const char *file, void *scratch,
                record_function *function, void *argument, struct error *error);

/* record_lock_key() - the lock of a record, by the name of its file. */
uint64_t record_lock_key(const struct record_table *table, const char *file);

/*
 * record_tidy() - remove the temporary files of records that killed processes left, where no process holds the record's
 * lock.
 */
void record_tidy(struct state *state, const struct record_table *table);

/* record_tidy_file() - likewise, that of one record. */
void record_tidy_file(struct state *state, const struct record_table *table, const char *file);

/* record_release() - free what a record owns. */
void record_release(const struct record_table *table, void *record);

#endif
