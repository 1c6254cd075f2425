/* SPDX-License-Identifier: Apache-2.0 */
/*
 * words.h - a request in words: arguments -> the JSON object that says the same, by the program's table of keys.
 *
 *      mount-bind web /srv/data /data --read-only --timeout-seconds=5
 *      {"container": "web", "source": "/srv/data", "target": "/data", "readOnly": true, "timeoutSeconds": 5}
 *
 * Nothing is checked here but what only words can have wrong; the object goes through the parser of requests.
 */
#ifndef FLEXGRAFT_BASE_WORDS_H
#define FLEXGRAFT_BASE_WORDS_H

#include <stdbool.h>

#include "base/key.h"

/* Whose words they are. */
struct words {
        const char *program;
        const struct key_table *table;
        unsigned programs;
        void (*offer)(void *nearest); /* gives nearest_offer() the options that are no keys; NULL: there are none */
};

/*
 * words_are_json() - whether the arguments are a request in JSON: the first is empty or begins, after blanks, with a
 * brace, a bracket or a quotation mark, or it is exactly "-".
 */
bool words_are_json(int argc, char **argv);

/*
 * words_take() - the request that argv[1] and on say. "--" ends the options; all that follows it are words. The order
 * of argv is changed.
 *
 * Gives:  ret_request, owned by the caller.
 * Errors: OPERATION_PARSE: an option that is unknown, given twice, or has no value; a word that is missing or too many.
 */
int words_take(const struct words *words, int argc, char **argv, json_t **ret_request, struct error *error);

/* ---- words_form.c: what the rows of a table of keys look like in words: options, the usage line */

#define WORDS_OPTION_MAX 64 /* bytes of an option's name */
#define WORDS_USAGE_MAX 256

/* words_unknown() - the error of an option that there is not; it names the nearest. */
int words_unknown(const struct words *words, const char *option, struct error *error);

/* words_option() - a key's name as an option: "--read-only". ret_option: of WORDS_OPTION_MAX bytes. */
void words_option(const char *key, char *ret_option);

/* words_usage() - "mount-bind CONTAINER SOURCE TARGET [OPTION...]". ret_usage: of WORDS_USAGE_MAX bytes. */
void words_usage(const struct words *words, char *ret_usage);

/*
 * words_describe() - the same for programs: {"words": [{"key", "required", "list"}], "options": [{"option", "key",
 * "takes"}]}, for completions and man pages. The caller owns it.
 */
json_t *words_describe(const struct words *words);

/* words_is_list() - whether the key takes one value after the other. */
bool words_is_list(const struct key *key);

/* words_is_positional() - whether these programs take the key as a word. */
bool words_is_positional(const struct words *words, const struct key *key);

#endif
