/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.h - JSON from text (a request) and from files (configuration, records, container runtimes' state), and to files.
 *
 * The messages of all parsers say "invalid JSON at line L, column C: why", in printable ASCII whatever the input was.
 * Repeated keys are refused everywhere.
 */
#ifndef FLEXGRAFT_BASE_JSON_H
#define FLEXGRAFT_BASE_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/file.h"

#define JSON_FILE_MAX_BYTES ((size_t)16 * 1024 * 1024)
#define JSON_TEXT_MAX_DEPTH 8 /* levels of objects and arrays in a request */

/*
 * json_text_parse() - parse a request; the caller owns *ret_value (json_decref).
 *
 * Errors: OPERATION_PARSE with EINVAL: the text is empty, no JSON, nested deeper than JSON_TEXT_MAX_DEPTH, or has a key
 * twice. The subject is the key, or "the request".
 */
int json_text_parse(const char *text, size_t length, json_t **ret_value, struct error *error);

/* json_text_load() - what a program of ours printed, of any depth, owned by the caller. NULL: no JSON, or no memory. */
json_t *json_text_load(const char *text, size_t length);

/*
 * json_text_may_have() - whether a text that json_text_parse() takes may have this string, as a key or a value; it is
 * looked for between quotation marks, without a parser. false is certain: only with a backslash can a string be written
 * otherwise, and where there is one the answer is true. word: not empty. For programs that must know before they drop
 * their privileges; tests/fuzz/request.c compares it with the parser.
 */
bool json_text_may_have(const char *text, const char *word);

/* json_text_parse_stdin() - the same for standard input, which may have at most maximum bytes (whole MiB). */
int json_text_parse_stdin(size_t maximum, json_t **ret_value, struct error *error);

/* json_member_text() - a member of an object that is a string, borrowed; "": there is none, or no object. */
const char *json_member_text(const json_t *object, const char *key);

/* json_strings() - an array of these texts; NULL ends the list. The caller owns it; NULL: no memory. */
json_t *json_strings(const char *const *texts);

/* json_text_make() - a value as text on one line, owned by the caller; NULL: no memory, or no value. */
char *json_text_make(const json_t *value);

/*
 * json_text_hide() - remove from the error of a parser above what it quotes from the text: in a text that is not JSON,
 * this can be a secret. Line and column stay.
 */
void json_text_hide(struct error *error);

/*
 * json_file_load() - parse the file; the caller owns *ret_value (json_decref). A number that no json_int_t holds, as
 * 2^64-1, is a real: container runtimes write that for an rlimit without a limit.
 *
 * Errors: the errno of opening and reading it, ENOENT among them; EFBIG; EBADMSG when it is not one JSON value of that
 * type (JSON_OBJECT or JSON_ARRAY), with the line in the error's reason.
 */
int json_file_load(int dirfd, const char *path, json_type type, json_t **ret_value, struct error *error);

/* json_file_load_fd() - the same of a file that is open, borrowed; path: its name, in messages. */
int json_file_load_fd(int fd, const char *path, json_type type, json_t **ret_value, struct error *error);

/*
 * json_file_replace() - replace the content of name in dirfd, all or nothing (file_replace()). Returns 0 or negative
 * errno; ENOMEM also for a value that is NULL.
 */
int json_file_replace(int dirfd, const char *name, const json_t *value, enum file_durability durability);

/* cleanup_json: an owned reference that is dropped at the end of its block. */
static inline void json_drop(json_t **json)
{
        json_decref(*json);
}
#define cleanup_json __attribute__((cleanup(json_drop)))

#endif
