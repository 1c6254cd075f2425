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

bool file_key_check(const struct file_key *key, const json_t *value, char *ret_complaint)
{
        if (value == NULL && key->required)
                (void)snprintf(ret_complaint, FILE_KEY_COMPLAINT_SIZE, "\"%s\" must be given", key->name);
        else if (value == NULL || (key->accepts(value) && key->members == NULL))
                return true;
        else if (key->accepts(value))
                return file_keys_check(key->members, value, ret_complaint);
        else
                (void)snprintf(ret_complaint, FILE_KEY_COMPLAINT_SIZE, "\"%s\" must be %s", key->name, key->type);
        return false;
}

bool file_keys_check(const struct file_key *keys, const json_t *object, char *ret_complaint)
{
        const char *name;
        const json_t *value;

        json_object_foreach ((json_t *)object, name, value)
                if (file_key_find(keys, name) == NULL) {
                        (void)snprintf(ret_complaint, FILE_KEY_COMPLAINT_SIZE, "unknown key \"%.64s\"", name);
                        return false;
                }
        for (; keys->name != NULL; keys++)
                if (!file_key_check(keys, json_object_get(object, keys->name), ret_complaint))
                        return false;
        return true;
}

bool file_key_is_object(const json_t *value)
{
        return json_is_object(value);
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
