/* SPDX-License-Identifier: Apache-2.0 */
#include "base/words.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/nearest.h"
#include "base/text.h"

bool words_is_list(const struct key *key)
{
        return key->type == KEY_ARRAY || key->spelling == SPELLED_LIST || key->spelling == SPELLED_OBJECTS;
}

bool words_is_positional(const struct words *words, const struct key *key)
{
        return (key->programs & key->positional & words->programs) != 0;
}

/* "readOnly" -> PREFIX "read-only" */
static void put_name(const char *prefix, const char *key, char *ret_option)
{
        size_t length = (size_t)snprintf(ret_option, WORDS_OPTION_MAX, "%s", prefix);

        if (length >= WORDS_OPTION_MAX)
                length = WORDS_OPTION_MAX - 1;
        for (; *key != '\0' && length + 2 < WORDS_OPTION_MAX; key++) {
                if (isupper((unsigned char)*key) != 0)
                        ret_option[length++] = '-';
                ret_option[length++] = (char)tolower((unsigned char)*key);
        }
        ret_option[length] = '\0';
}

void words_option(const char *key, char *ret_option)
{
        put_name("--", key, ret_option);
}

/* Each option of the table: its name and its row. */
typedef void visit_option(const char *option, const struct key *key, void *argument);

static void visit_rows(const struct key_table *table, unsigned programs, const char *prefix, visit_option *visit,
                       void *argument)
{
        for (size_t i = 0; i < table->count; i++) {
                const struct key *key = &table->rows[i];
                char option[WORDS_OPTION_MAX];
                char inner[WORDS_OPTION_MAX + 1];

                if ((key->programs & programs) == 0)
                        continue;
                put_name(prefix, key->name, option);
                visit(option, key, argument);
                (void)snprintf(inner, sizeof inner, "%s.", option);
                if (key->spelling >= SPELLED_MEMBERS && key->members != NULL)
                        visit_rows(key->members, ~0U, inner, visit, argument);
        }
}

static void offer_option(const char *option, const struct key *key, void *argument)
{
        char no[WORDS_OPTION_MAX + 3];

        nearest_offer(argument, option);
        (void)snprintf(no, sizeof no, "--no-%s", option + 2);
        if (key->type == KEY_BOOLEAN)
                nearest_offer(argument, no);
}

int words_unknown(const struct words *words, const char *option, struct error *error)
{
        struct nearest nearest = { .asked = option };
        char hint[NEAREST_HINT_MAX];

        visit_rows(words->table, words->programs, "--", offer_option, &nearest);
        if (words->offer != NULL)
                words->offer(&nearest);
        nearest_hint(&nearest, hint);
        return fail_because(error, EINVAL, OPERATION_PARSE, option, "unknown option %.128s%s", option, hint);
}

static void put_upper(const char *key, char *ret_word)
{
        put_name("", key, ret_word);
        for (; *ret_word != '\0'; ret_word++)
                *ret_word = (char)toupper((unsigned char)*ret_word);
}

void words_usage(const struct words *words, char *ret_usage)
{
        size_t length = (size_t)snprintf(ret_usage, WORDS_USAGE_MAX, "%s", words->program);

        for (int positional = 1; positional >= 0; positional--) /* what is required and no word, after the words */
                for (size_t i = 0; i < words->table->count && length < WORDS_USAGE_MAX; i++) {
                        const struct key *key = &words->table->rows[i];
                        bool required = (key->programs & key->required & words->programs) != 0;
                        char option[WORDS_OPTION_MAX];
                        char word[WORDS_OPTION_MAX];

                        if ((key->programs & words->programs) == 0 ||
                            words_is_positional(words, key) != (positional == 1) || (positional == 0 && !required))
                                continue;
                        words_option(key->name, option);
                        put_upper(key->name, word);
                        length += (size_t)snprintf(ret_usage + length, WORDS_USAGE_MAX - length, " %s%s%s%s%s%s",
                                                   required ? "" : "[", positional == 0 ? option : "",
                                                   positional == 0 ? "=" : "", word, words_is_list(key) ? "..." : "",
                                                   required ? "" : "]");
                }
        if (length < WORDS_USAGE_MAX)
                (void)snprintf(ret_usage + length, WORDS_USAGE_MAX - length, " [OPTION...]");
}

static void describe_option(const char *option, const struct key *key, void *argument)
{
        bool more = words_is_list(key) || key->spelling == SPELLED_COMMAS || key->type == KEY_STRINGS;
        json_t *entry = json_pack("{s:s, s:s, s:s}", "option", option, "key", key->name, "takes",
                                  key->type == KEY_BOOLEAN ? "nothing"
                                  : more                   ? "values"
                                                           : "value");

        if (key->words != NULL)
                (void)json_object_set_new(entry, "words", json_strings(key->words));
        (void)json_array_append_new(argument, entry);
}

json_t *words_describe(const struct words *words)
{
        json_t *positional = json_array();
        json_t *options = json_array();
        char usage[WORDS_USAGE_MAX];

        for (size_t i = 0; i < words->table->count; i++) {
                const struct key *key = &words->table->rows[i];

                if (words_is_positional(words, key))
                        (void)json_array_append_new(positional,
                                                    json_pack("{s:s, s:b, s:b}", "key", key->name, "required",
                                                              (key->required & words->programs) != 0, "list",
                                                              words_is_list(key)));
        }
        visit_rows(words->table, words->programs, "--", describe_option, options);
        words_usage(words, usage);
        return json_pack("{s:s, s:o, s:o}", "usage", usage, "words", positional, "options", options);
}
