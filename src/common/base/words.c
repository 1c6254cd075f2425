/* SPDX-License-Identifier: Apache-2.0 */
#include "base/words.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"

#define BLANKS " \t\r\n"
#define NO "--no-"

bool words_are_json(int argc, char **argv)
{
        const char *first = argc > 1 ? argv[1] : "x";

        if (strcmp(first, "-") == 0)
                return true;
        first += strspn(first, BLANKS);
        return argc > 1 && (*first == '\0' || *first == '{' || *first == '[' || *first == '"');
}

static int refuse(const char *option, const char *complaint, struct error *error)
{
        return fail_because(error, EINVAL, OPERATION_PARSE, option, "%.128s %s", option, complaint);
}

static int refuse_with_usage(const struct words *words, const char *what, const char *complaint, struct error *error)
{
        char usage[WORDS_USAGE_MAX];

        words_usage(words, usage);
        return fail_because(error, EINVAL, OPERATION_PARSE, what, "%.128s %s; usage: %s", what, complaint, usage);
}

/* ---- options */

struct option {
        const char *text; /* as it was given, without its value */
        const struct key *key;
        json_t *object; /* borrowed: the request, or the member of it that has the key */
        bool no;        /* --no-KEY */
};

/* The row whose name as an option is this. */
static const struct key *find_row(const struct key_table *table, unsigned programs, const char *name)
{
        for (size_t i = 0; i < table->count; i++) {
                char option[WORDS_OPTION_MAX];

                words_option(table->rows[i].name, option);
                if ((table->rows[i].programs & programs) != 0 && strcmp(option + 2, name) == 0)
                        return &table->rows[i];
        }
        return NULL;
}

/* The object that --from.container.unit is a member of; it is made if missing. NULL: "from" is a text already. */
static json_t *enter(json_t *object, const char *member)
{
        json_t *inner = json_object_get(object, member);

        if (inner == NULL && json_object_set_new(object, member, json_object()) == 0)
                inner = json_object_get(object, member);
        return json_is_object(inner) ? inner : NULL;
}

/* name: "from.container.unit"; changed. Gives no key if there is none. */
static int find_option(const struct words *words, json_t *request, char *name, struct option *ret_option,
                       struct error *error)
{
        const struct key_table *table = words->table;
        unsigned programs = words->programs;
        const char *part;

        ret_option->object = request;
        ret_option->key = NULL;
        while (table != NULL && (part = strsep(&name, ".")) != NULL) {
                if (ret_option->key != NULL &&
                    (ret_option->object = enter(ret_option->object, ret_option->key->name)) == NULL)
                        return refuse(ret_option->text, "is given twice, as one word and in parts", error);
                if ((ret_option->key = find_row(table, programs, part)) == NULL)
                        return 0;
                table = ret_option->key->spelling >= SPELLED_MEMBERS ? ret_option->key->members : NULL;
                programs = ~0U;
        }
        if (name != NULL) /* a member of what has none */
                ret_option->key = NULL;
        return 0;
}

/* ---- values */

static json_t *scalar(const struct key *key, const char *text)
{
        uint64_t number;

        switch (key->type) {
        case KEY_BOOLEAN:
                if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
                        return json_boolean(text[0] == 't');
                break;
        case KEY_INTEGER:
        case KEY_USER_ID:
                if (text_number(text, INT64_MAX, &number))
                        return json_integer((json_int_t)number);
                break;
        default:
                break;
        }
        return json_string(text);
}

/* CONTAINER:/PATH; no container has a slash in its name. */
static json_t *side(const char *text)
{
        const char *colon = strstr(text, ":/");

        if (colon == NULL || colon == text)
                return json_string(text);
        return json_pack("{s:s%, s:s}", "container", text, (size_t)(colon - text), "path", colon + 1);
}

/* NAME=VALUE, a member of an object of strings. */
static int add_member(json_t *object, const struct option *option, const char *text, struct error *error)
{
        const char *equals = strchr(text, '=');
        char name[WORDS_OPTION_MAX * 2];
        json_t *inner;

        if (equals == NULL || equals == text || (size_t)(equals - text) >= sizeof name)
                return refuse(option->text, "takes NAME=VALUE", error);
        (void)snprintf(name, sizeof name, "%.*s", (int)(equals - text), text);
        inner = enter(object, option->key->name);
        if (json_object_get(inner, name) != NULL)
                return fail_because(error, EINVAL, OPERATION_PARSE, option->text, "%s %s is given twice", option->text,
                                    name);
        return json_object_set_new(inner, name, json_string(equals + 1)) == 0
                       ? 0
                       : refuse(option->text, "is not UTF-8", error);
}

static int append(json_t *object, const struct option *option, json_t *value, struct error *error)
{
        json_t *list = json_object_get(object, option->key->name);

        if (list == NULL && json_object_set_new(object, option->key->name, json_array()) == 0)
                list = json_object_get(object, option->key->name);
        return json_array_append_new(list, value) == 0 ? 0 : refuse(option->text, "is not UTF-8", error);
}

static int append_object(json_t *object, const struct option *option, const char *text, struct error *error)
{
        json_t *value;
        int r = json_text_parse(text, strlen(text), &value, error);

        return r < 0 ? r : append(object, option, value, error);
}

static int give(const struct option *option, const char *text, struct error *error)
{
        const struct key *key = option->key;
        json_t *before = json_object_get(option->object, key->name);
        json_t *value;

        if (key->type == KEY_STRINGS)
                return add_member(option->object, option, text, error);
        if (key->spelling == SPELLED_OBJECTS)
                return append_object(option->object, option, text, error);
        if (words_is_list(key))
                return append(option->object, option, json_string(text), error);
        if (before != NULL && key->spelling != SPELLED_COMMAS)
                return refuse(option->text, "is given twice", error);
        value = before != NULL                  ? json_sprintf("%s,%s", json_string_value(before), text)
                : key->spelling == SPELLED_SIDE ? side(text)
                                                : scalar(key, text);
        return json_object_set_new(option->object, key->name, value) == 0 ? 0
                                                                          : refuse(option->text, "is not UTF-8", error);
}

/* One option, and the argument after it if it is its value. Returns how many arguments it took. */
static int take_option(const struct words *words, json_t *request, char *text, const char *next, struct error *error)
{
        struct option option = { .text = text };
        char name[WORDS_OPTION_MAX * 2];
        char *value = strchr(text, '=');
        int r;

        if (value != NULL)
                *value++ = '\0';
        if (!text_starts(text, "--") || !text_copy(name, sizeof name, text + 2))
                return words_unknown(words, text, error);
        if ((r = find_option(words, request, name, &option, error)) < 0)
                return r;
        if (option.key == NULL && text_starts(text, NO)) {
                option.no = true;
                (void)text_copy(name, sizeof name, text + strlen(NO)); /* shorter than above */
                if ((r = find_option(words, request, name, &option, error)) < 0)
                        return r;
        }
        if (option.key == NULL || (option.no && option.key->type != KEY_BOOLEAN))
                return words_unknown(words, text, error);
        if (option.no && value != NULL)
                return refuse(text, "takes no value", error);
        if (value == NULL && option.key->type == KEY_BOOLEAN)
                value = option.no ? (char *)"false" : (char *)"true";
        if (value != NULL)
                return (r = give(&option, value, error)) < 0 ? r : 1;
        if (next == NULL || next[0] == '-')
                return fail_because(error, EINVAL, OPERATION_PARSE, text,
                                    "%.128s must be followed by a value; %.128s=VALUE takes any", text, text);
        return (r = give(&option, next, error)) < 0 ? r : 2;
}

/* ---- words */

/*
 * Give the words to the keys that are positional and not yet given: those that are required first, in the order of the
 * rows.
 */
static int give_positional(const struct words *words, json_t *request, int count, char **bare, struct error *error)
{
        int required = 0;
        int next = 0;

        for (size_t i = 0; i < words->table->count; i++) {
                const struct key *key = &words->table->rows[i];

                if (words_is_positional(words, key) && (key->required & words->programs) != 0 &&
                    json_object_get(request, key->name) == NULL)
                        required++;
        }
        for (size_t i = 0; i < words->table->count && next < count; i++) {
                const struct key *key = &words->table->rows[i];
                struct option option = { .text = key->name, .key = key, .object = request };
                bool needed = (key->required & words->programs) != 0;
                int r = 0;

                if (!words_is_positional(words, key) || json_object_get(request, key->name) != NULL ||
                    (!needed && count - next <= required))
                        continue;
                do
                        r = give(&option, bare[next++], error);
                while (r == 0 && next < count && words_is_list(key));
                if (r < 0)
                        return r;
                required -= needed ? 1 : 0;
        }
        if (next < count)
                return refuse_with_usage(words, bare[next], "is one word too many", error);
        for (size_t i = 0; i < words->table->count; i++)
                if ((words->table->rows[i].programs & words->table->rows[i].required & words->programs) != 0 &&
                    json_object_get(request, words->table->rows[i].name) == NULL)
                        return refuse_with_usage(words, words->table->rows[i].name, "is missing", error);
        return 0;
}

int words_take(const struct words *words, int argc, char **argv, json_t **ret_request, struct error *error)
{
        cleanup_json json_t *request = json_object();
        bool options = true;
        int count = 0; /* of the words, which are moved to argv[0] and on */
        int r;

        if (request == NULL)
                return fail(error, ENOMEM, OPERATION_PARSE, "the request");
        for (int i = 1; i < argc; i += r) {
                r = 1;
                if (!options || argv[i][0] != '-' || argv[i][1] == '\0')
                        argv[count++] = argv[i];
                else if (strcmp(argv[i], "--") == 0)
                        options = false;
                else if ((r = take_option(words, request, argv[i], i + 1 < argc ? argv[i + 1] : NULL, error)) < 0)
                        return r;
        }
        if ((r = give_positional(words, request, count, argv, error)) < 0)
                return r;
        *ret_request = json_incref(request);
        return 0;
}
