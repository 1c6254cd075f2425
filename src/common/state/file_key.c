/* SPDX-License-Identifier: Apache-2.0 */
#include "state/file_key.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

const struct file_key *file_key_find(const struct file_key *keys, const char *name)
{
        for (; keys->name != NULL; keys++)
                if (strcmp(keys->name, name) == 0)
                        return keys;
        return NULL;
}

/* "mode" of "access_mode" becomes "access_mode.mode". */
static bool add_parent(const struct file_key *parent, char *complaint)
{
        const char *quote = strchr(complaint, '"');
        char member[FILE_KEY_COMPLAINT_SIZE];

        (void)text_copy(member, sizeof member, quote != NULL ? quote + 1 : "");
        if (quote != NULL)
                (void)snprintf(complaint + (quote + 1 - complaint),
                               FILE_KEY_COMPLAINT_SIZE - (size_t)(quote + 1 - complaint), "%s.%s", parent->name,
                               member);
        return false;
}

static bool check_members(const struct file_key *key, const json_t *value, bool strict, char *ret_complaint)
{
        const json_t *item;
        size_t i;

        if (key->members == NULL)
                return true;
        if (json_is_object(value) && !file_keys_check(key->members, value, strict, ret_complaint))
                return add_parent(key, ret_complaint);
        json_array_foreach (value, i, item)
                if (!file_keys_check(key->members, item, strict, ret_complaint))
                        return add_parent(key, ret_complaint);
        return true;
}

static bool check(const struct file_key *key, const json_t *value, bool strict, char *ret_complaint)
{
        if (value != NULL && key->accepts(value))
                return check_members(key, value, strict, ret_complaint);
        if (value == NULL && !key->required)
                return true;
        (void)snprintf(ret_complaint, FILE_KEY_COMPLAINT_SIZE, "\"%s\" must be %s", key->name,
                       value == NULL ? "given" : key->type);
        return false;
}

bool file_keys_check(const struct file_key *keys, const json_t *object, bool strict, char *ret_complaint)
{
        const char *name;
        const json_t *value;

        json_object_foreach ((json_t *)object, name, value)
                if (strict && file_key_find(keys, name) == NULL) {
                        (void)snprintf(ret_complaint, FILE_KEY_COMPLAINT_SIZE, "unknown key \"%.64s\"", name);
                        return false;
                }
        for (; keys->name != NULL; keys++)
                if (!check(keys, json_object_get(object, keys->name), strict, ret_complaint))
                        return false;
        return true;
}

static const char *fallback_of(const struct file_key *keys, const char *name)
{
        const struct file_key *key = file_key_find(keys, name);

        return key != NULL ? key->fallback : NULL;
}

uint64_t file_key_number(const struct file_key *keys, const json_t *object, const char *name)
{
        const json_t *value = json_object_get(object, name);
        uint64_t number = (uint64_t)json_integer_value(value);

        if (value == NULL)
                (void)text_number(fallback_of(keys, name) ?: "", INT64_MAX, &number); /* the table has one */
        return number;
}

const char *file_key_text(const struct file_key *keys, const json_t *object, const char *name)
{
        return json_string_value(json_object_get(object, name)) ?: fallback_of(keys, name);
}

bool file_key_is_object(const json_t *value)
{
        return json_is_object(value);
}

bool file_key_is_array(const json_t *value)
{
        return json_is_array(value);
}

bool file_key_is_boolean(const json_t *value)
{
        return json_is_boolean(value);
}

bool file_key_is_count(const json_t *value)
{
        return json_is_integer(value) && json_integer_value(value) >= 0;
}

bool file_key_is_text(const json_t *value)
{
        return json_string_length(value) > 0;
}

bool file_key_is_texts(const json_t *value)
{
        const json_t *item;
        size_t i;

        json_array_foreach (value, i, item)
                if (!json_is_string(item))
                        return false;
        return json_is_array(value);
}

bool file_key_is_path(const json_t *value)
{
        char normal[PATH_MAX];

        return json_is_string(value) && text_path_normal(json_string_value(value), normal) == 0;
}

bool file_key_is_flag(const json_t *value)
{
        static const char *const words[] = { "true", "false", NULL };

        return json_is_string(value) && text_among(json_string_value(value), words);
}
