/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_key.h - the keys of the files in /etc/flexgraft: one table per file, for its loader's checks and for its manual
 * page.
 */
#ifndef FLEXGRAFT_STATE_FILE_KEY_H
#define FLEXGRAFT_STATE_FILE_KEY_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A row; a table of them ends with one without a name. */
struct file_key {
        const char *name;
        const char *type; /* "an absolute path": what follows "must be" */
        bool (*accepts)(const json_t *value);
        bool required;
        const char *fallback;           /* what counts where the file has none: the value, or words; NULL: nothing */
        const char *help;               /* one line */
        const struct file_key *members; /* of a value that is an object, or of objects in an array; NULL: any */
};

#define FILE_KEY_COMPLAINT_SIZE 256

/* file_key_find() - the row of a key; NULL: there is none. */
const struct file_key *file_key_find(const struct file_key *keys, const char *name);

/*
 * file_keys_check() - whether an object has a value that it takes for each of these keys, and, where it is strict, no
 * others. Gives: ret_complaint, of FILE_KEY_COMPLAINT_SIZE bytes, where it returns false.
 */
bool file_keys_check(const struct file_key *keys, const json_t *object, bool strict, char *ret_complaint);

/* file_key_number() - of an object that was checked: the number of a key, or the one that its row has for none. */
uint64_t file_key_number(const struct file_key *keys, const json_t *object, const char *name);

/* file_key_text() - likewise a string; NULL: neither. */
const char *file_key_text(const struct file_key *keys, const json_t *object, const char *name);

/* What values may be. */
bool file_key_is_object(const json_t *value);
bool file_key_is_array(const json_t *value);
bool file_key_is_boolean(const json_t *value);
bool file_key_is_count(const json_t *value); /* a whole number, not negative */
bool file_key_is_text(const json_t *value);  /* not empty */
bool file_key_is_texts(const json_t *value); /* an array of strings */
bool file_key_is_path(const json_t *value);  /* absolute */
bool file_key_is_flag(const json_t *value);  /* the text "true" or "false" */

#endif
