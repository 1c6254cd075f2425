/* SPDX-License-Identifier: Apache-2.0 */
/*
 * words_form.h - what the rows of a table of keys look like in words: options, the usage line.
 */
#ifndef FLEXGRAFT_BASE_WORDS_FORM_H
#define FLEXGRAFT_BASE_WORDS_FORM_H

#include "base/key.h"

#define WORDS_OPTION_MAX 64 /* bytes of an option's name */
#define WORDS_USAGE_MAX 256

/* Whose words they are. */
struct words {
        const char *program;
        const struct key_table *table;
        unsigned programs;
        void (*offer)(void *nearest); /* gives nearest_offer() the options that are no keys; NULL: there are none */
};

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
