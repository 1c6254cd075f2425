/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json_value.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

int json_value_refuse(struct error *error, const char *key, const char *complaint)
{
        error_because(error, EINVAL, OPERATION_PARSE, key, "%s: %s", key, complaint);
        return -EINVAL; /* visible for static analysis */
}

int json_value_string(const char *key, const json_t *value, size_t maximum, const char **ret_string,
                      struct error *error)
{
        if (!json_is_string(value))
                return json_value_refuse(error, key, "must be a string");
        if (strlen(json_string_value(value)) != json_string_length(value))
                return json_value_refuse(error, key, "holds a NUL byte");
        if (json_string_length(value) > maximum)
                return fail_because(error, EINVAL, OPERATION_PARSE, key, "%s: longer than %zu bytes", key, maximum);
        if (json_string_length(value) == 0)
                return json_value_refuse(error, key, "must not be empty");
        *ret_string = json_string_value(value);
        return 0;
}

int json_value_id(const char *key, const json_t *value, const char **ret_id, struct error *error)
{
        int r = json_value_string(key, value, JSON_VALUE_ID_MAX, ret_id, error);

        if (r == 0 && ((*ret_id)[0] == '.' || strspn(*ret_id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                                              "0123456789_.+:@-") != strlen(*ret_id)))
                return json_value_refuse(error, key, "may hold letters, digits and _.+:@- and not begin with a dot");
        return r;
}

int json_value_size(const char *key, const json_t *value, bool percent, char *ret_text, size_t size,
                    struct error *error)
{
        static const char suffixes[] = "kmgt";
        const char *text = "";
        const char *rest;
        const char *suffix;
        char digits[24];
        uint64_t number;
        unsigned shift = 0;
        int r;

        if (json_is_integer(value)) {
                if (json_integer_value(value) < 1)
                        return json_value_refuse(error, key, "must be above 0");
                (void)snprintf(ret_text, size, "%lld", (long long)json_integer_value(value));
                return 0;
        }
        if ((r = json_value_string(key, value, sizeof digits - 1, &text, error)) < 0)
                return r;
        rest = text + strspn(text, "0123456789");
        (void)snprintf(digits, sizeof digits, "%.*s", (int)(rest - text), text);
        if (!text_number(digits, INT64_MAX, &number) || number == 0)
                return json_value_refuse(error, key, "must be a number above 0, as 1048576, \"64m\" or \"64Mi\"");
        if (percent && strcmp(rest, "%") == 0 && number <= 100) {
                (void)snprintf(ret_text, size, "%s%%", digits);
                return 0;
        }
        if (rest[0] != '\0') {
                suffix = strchr(suffixes, rest[0] | 0x20);
                if (suffix == NULL || *suffix == '\0' || (rest[1] != '\0' && strcmp(rest + 1, "i") != 0))
                        return json_value_refuse(error, key,
                                                 "must end in k, m, g or t (or Ki, Mi, Gi, Ti), or in nothing");
                shift = 10U * (unsigned)(suffix - suffixes + 1);
        }
        if (number > (uint64_t)INT64_MAX >> shift)
                return json_value_refuse(error, key, "is too large");
        number <<= shift;
        (void)snprintf(ret_text, size, "%llu", (unsigned long long)number);
        return 0;
}

int json_value_number(const char *key, const json_t *value, uint32_t *ret_id, struct error *error)
{
        if (!json_is_integer(value) || json_integer_value(value) < 0 || json_integer_value(value) >= UINT32_MAX)
                return json_value_refuse(error, key, "must be an id, as the container counts them");
        *ret_id = (uint32_t)json_integer_value(value);
        return 0;
}

int json_value_path(const char *key, const json_t *value, const char **ret_path, struct error *error)
{
        int r = json_value_string(key, value, JSON_VALUE_STRING_MAX, ret_path, error);

        if (r == 0 && (*ret_path)[0] != '/')
                return json_value_refuse(error, key, "must be an absolute path of the node");
        return r;
}
