/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_key.h - the keys of the files in /etc/flexgraft: one table per file, for its loader's checks and for its manual page.
 */
#ifndef FLEXGRAFT_STATE_FILE_KEY_H
#define FLEXGRAFT_STATE_FILE_KEY_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* A row; a table of them ends with one without a name. */
struct file_key {
        const char *name;
        const char *type; /* "an absolute path": what follows "must be" */
        bool (*accepts)(const json_t *value);
        bool required;
        const char *fallback;           /* the value where the file has none, as people write it; NULL: nothing */
        const char *help;               /* one line */
        const struct file_key *members; /* of a value that is an object; NULL: of any other */
};

#define FILE_KEY_COMPLAINT_SIZE 256

/* file_key_find() - the row of a key; NULL: there is none. */
const struct file_key *file_key_find(const struct file_key *keys, const char *name);

/*
 * file_key_check() - whether a value is what the key takes; NULL: the file has none.
 * Gives: ret_complaint, of FILE_KEY_COMPLAINT_SIZE bytes, where it returns false.
 */
bool file_key_check(const struct file_key *key, const json_t *value, char *ret_complaint);

/* file_keys_check() - whether an object has these keys and no others, each with a value it takes. Gives: as above. */
bool file_keys_check(const struct file_key *keys, const json_t *object, char *ret_complaint);

/* What values may be. */
bool file_key_is_object(const json_t *value);
bool file_key_is_boolean(const json_t *value);
bool file_key_is_count(const json_t *value); /* a whole number, not negative */
bool file_key_is_text(const json_t *value);  /* not empty */
bool file_key_is_texts(const json_t *value); /* an array of strings */
bool file_key_is_path(const json_t *value);  /* absolute */

#endif
