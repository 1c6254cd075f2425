/* SPDX-License-Identifier: Apache-2.0 */
#include "base/key.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/json_value.h"
#include "base/text.h"

#define THE_REQUEST "the request"

const struct key *key_find(const struct key_table *table, unsigned programs, const char *name)
{
        for (size_t i = 0; i < table->count; i++)
                if ((table->rows[i].programs & programs) != 0 && strcmp(table->rows[i].name, name) == 0)
                        return &table->rows[i];
        return NULL;
}

int key_refuse_word(const char *const *words, const char *name, struct error *error)
{
        char text[256] = "must be ";
        size_t length = strlen(text);

        for (size_t i = 0; words[i] != NULL && length < sizeof text; i++) {
                const char *before = i == 0 ? "" : words[i + 1] == NULL ? " or " : ", ";

                length += (size_t)snprintf(text + length, sizeof text - length, "%s%s", before, words[i]);
        }
        return json_value_refuse(error, name, text);
}

int key_word(const char *const *words, const char *name, const json_t *value, size_t *ret_index, struct error *error)
{
        const char *word;
        int r = json_value_string(name, value, JSON_VALUE_STRING_MAX, &word, error);

        if (r < 0)
                return r;
        for (size_t i = 0; words[i] != NULL; i++)
                if (strcmp(words[i], word) == 0) {
                        *ret_index = i;
                        return 0;
                }
        return key_refuse_word(words, name, error);
}

static int take_boolean(bool *field, const char *name, const json_t *value, struct error *error)
{
        if (!json_is_boolean(value))
                return json_value_refuse(error, name, "must be true or false");
        *field = json_is_true(value);
        return 0;
}

static int take_integer(const struct key *key, int *field, const char *name, const json_t *value, struct error *error)
{
        if (!json_is_integer(value) || json_integer_value(value) < key->minimum ||
            json_integer_value(value) > key->maximum)
                return fail_because(error, EINVAL, OPERATION_PARSE, name,
                                    "%s: must be a whole number from %lld to %lld", name, (long long)key->minimum,
                                    (long long)key->maximum);
        *field = (int)json_integer_value(value);
        return 0;
}

static int take_string(const struct key *key, const char **field, const char *name, const json_t *value,
                       struct error *error)
{
        size_t maximum = key->maximum > 0 ? (size_t)key->maximum : JSON_VALUE_STRING_MAX;
        int r = json_value_string(name, value, maximum, field, error);

        if (r < 0 || key->type != KEY_TEXT)
                return r;
        for (const char *text = *field; *text != '\0'; text++)
                if ((unsigned char)*text < ' ' || *text == 0x7f)
                        return json_value_refuse(error, name, "holds a control character");
        return 0;
}

static int take_path(const struct key *key, const char **field, const char *name, const json_t *value,
                     struct error *error)
{
        int r = take_string(key, field, name, value, error);

        return r < 0 ? r : json_value_path(name, value, field, error);
}

static int take_word(const struct key *key, const char **field, const char *name, const json_t *value,
                     struct error *error)
{
        size_t index = 0;
        int r = key_word(key->words, name, value, &index, error);

        if (r == 0)
                *field = key->words[index];
        return r;
}

static int take_size(uint64_t *field, const char *name, const json_t *value, struct error *error)
{
        char text[24];
        int r = json_value_size(name, value, /* percent= */ false, text, sizeof text, error);

        if (r == 0)
                (void)text_number(text, INT64_MAX, field); /* it is one */
        return r;
}

static int take_strings(const json_t **field, const char *name, const json_t *value, struct error *error)
{
        const json_t *member;
        const char *ignored;
        const char *key;
        int r;

        if (!json_is_object(value))
                return json_value_refuse(error, name, "must be an object of strings");
        json_object_foreach ((json_t *)value, key, member)
                if ((r = json_value_string(name, member, JSON_VALUE_STRING_MAX, &ignored, error)) < 0)
                        return r;
        *field = value;
        return 0;
}

int key_take(const struct key *key, const char *name, void *object, const json_t *value, struct error *error)
{
        void *field = (char *)object + key->offset;

        if (key->take != NULL)
                return key->take(object, name, value, error);
        switch (key->type) {
        case KEY_BOOLEAN:
                return take_boolean(field, name, value, error);
        case KEY_INTEGER:
                return take_integer(key, field, name, value, error);
        case KEY_USER_ID:
                return json_value_number(name, value, field, error);
        case KEY_STRING:
        case KEY_TEXT:
                return take_string(key, field, name, value, error);
        case KEY_NAME:
                return json_value_id(name, value, field, error);
        case KEY_PATH:
                return take_path(key, field, name, value, error);
        case KEY_WORD:
                return take_word(key, field, name, value, error);
        case KEY_SIZE:
                return take_size(field, name, value, error);
        case KEY_STRINGS:
                return take_strings(field, name, value, error);
        default:
                return fail(error, ENOSYS, OPERATION_PARSE, name); /* such a row has a take() */
        }
}

int key_unknown(const char *name, struct error *error)
{
        return fail_because(error, EINVAL, OPERATION_PARSE, name, "unknown key \"%.128s\"", name);
}

int key_take_all(const struct key_table *table, unsigned programs, void *object, const json_t *request,
                 struct error *error)
{
        const struct key *key;
        const char *name;
        json_t *value;
        int r;

        json_object_foreach ((json_t *)request, name, value) {
                if ((key = key_find(table, programs, name)) == NULL)
                        return key_unknown(name, error);
                if ((r = key_take(key, name, object, value, error)) < 0)
                        return r;
        }
        for (size_t i = 0; i < table->count; i++)
                if ((table->rows[i].required & programs) != 0 && json_object_get(request, table->rows[i].name) == NULL)
                        return json_value_refuse(error, table->rows[i].name, "is missing");
        return 0;
}

int key_read_request(int argc, char **argv, json_t **ret_request, struct error *error)
{
        int r;

        *ret_request = NULL;
        if (argc != 2)
                return fail_because(error, EINVAL, OPERATION_PARSE, THE_REQUEST,
                                    "one argument is needed: a JSON object, or - for standard input");
        r = strcmp(argv[1], "-") == 0 ? json_text_parse_stdin(KEY_REQUEST_MAX_BYTES, ret_request, error)
                                      : json_text_parse(argv[1], strlen(argv[1]), ret_request, error);
        if (r == 0 && !json_is_object(*ret_request)) {
                json_decref(*ret_request);
                *ret_request = NULL;
                return fail_because(error, EINVAL, OPERATION_PARSE, THE_REQUEST, "it must be a JSON object");
        }
        return r;
}
