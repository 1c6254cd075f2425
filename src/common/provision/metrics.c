/* SPDX-License-Identifier: Apache-2.0 */
#include "provision/metrics.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/reply.h"

/* The whole text, written at once. */
struct text {
        char *bytes; /* owned; NULL: there was no memory for it */
        size_t length;
};

static void __attribute__((format(printf, 2, 3))) put(struct text *text, const char *format, ...)
{
        va_list arguments;
        char line[2048];
        char *grown;
        int length;

        va_start(arguments, format);
        length = vsnprintf(line, sizeof line, format, arguments);
        va_end(arguments);
        grown = length >= 0 && length < (int)sizeof line ? realloc(text->bytes, text->length + (size_t)length) : NULL;
        if (grown == NULL)
                return;
        (void)memcpy(grown + text->length, line, (size_t)length);
        text->bytes = grown;
        text->length += (size_t)length;
}

/* A label's value: backslash, double quote and line feed are escaped. */
static const char *label(const json_t *object, const char *key, char *ret_label, size_t size)
{
        const char *value = json_string_value(json_object_get(object, key));
        size_t length = 0;

        for (; value != NULL && *value != '\0' && length + 3 < size; value++) {
                if (*value == '\\' || *value == '"' || *value == '\n')
                        ret_label[length++] = '\\';
                ret_label[length++] = (char)(*value == '\n' ? 'n' : *value);
        }
        ret_label[length] = '\0';
        return ret_label;
}

static void put_pools(struct text *text, const json_t *pools, const char *metric, const char *key, const char *help)
{
        const json_t *pool;
        size_t i;

        put(text, "# HELP flexgraft_pool_%s_bytes %s\n# TYPE flexgraft_pool_%s_bytes gauge\n", metric, help, metric);
        json_array_foreach (pools, i, pool) {
                char name[600];
                char type[64];

                if (json_object_get(pool, key) == NULL)
                        continue; /* it has a problem */
                put(text, "flexgraft_pool_%s_bytes{pool=\"%s\",type=\"%s\"} %lld\n", metric,
                    label(pool, "name", name, sizeof name), label(pool, "type", type, sizeof type),
                    (long long)json_integer_value(json_object_get(pool, key)));
        }
}

/* A pool that cannot be read has no other line. */
static void put_problems(struct text *text, const json_t *reply)
{
        const json_t *pool;
        size_t i;

        put(text, "# HELP flexgraft_pool_problem Whether a pool cannot be read.\n"
                  "# TYPE flexgraft_pool_problem gauge\n");
        json_array_foreach (json_object_get(reply, "pools"), i, pool) {
                char name[600];

                put(text, "flexgraft_pool_problem{pool=\"%s\"} %d\n", label(pool, "name", name, sizeof name),
                    json_object_get(pool, "problem") != NULL);
        }
        put(text,
            "# HELP flexgraft_profiles_rejected Whether the file of profiles was rejected.\n"
            "# TYPE flexgraft_profiles_rejected gauge\n"
            "flexgraft_profiles_rejected %d\n",
            json_object_get(reply, "profilesProblem") != NULL);
}

static void put_profiles(struct text *text, const json_t *pools, const char *metric, const char *key, const char *help)
{
        const json_t *pool;
        size_t i;

        put(text, "# HELP flexgraft_profile_%s_bytes %s\n# TYPE flexgraft_profile_%s_bytes gauge\n", metric, help,
            metric);
        json_array_foreach (pools, i, pool) {
                const json_t *profile;
                size_t j;

                json_array_foreach (json_object_get(pool, "profiles"), j, profile) {
                        char name[600];
                        char of[600];

                        if (json_object_get(profile, key) == NULL)
                                continue; /* it has a problem */
                        put(text, "flexgraft_profile_%s_bytes{pool=\"%s\",profile=\"%s\"} %lld\n", metric,
                            label(pool, "name", name, sizeof name), label(profile, "profile", of, sizeof of),
                            (long long)json_integer_value(json_object_get(profile, key)));
                }
        }
}

int provision_metrics_say(const json_t *reply)
{
        const json_t *pools = json_object_get(reply, "pools");
        struct text text = {};
        int r;

        put_pools(&text, pools, "size", "total", "Size that a pool may use, in bytes.");
        put_pools(&text, pools, "available", "available", "Free room in a pool, in bytes.");
        put_pools(&text, pools, "largest_volume", "largest", "Largest volume that a pool has room for, in bytes.");
        put_profiles(&text, pools, "available", "available", "Free room in a pool for volumes of a profile, in bytes.");
        put_profiles(&text, pools, "largest_volume", "largest",
                     "Largest volume of a profile that a pool has room for, in bytes.");
        put_problems(&text, reply);
        r = text.bytes != NULL ? file_write_all(STDOUT_FILENO, text.bytes, text.length) : -1;
        free(text.bytes);
        return r < 0 ? EXIT_FAILED : EXIT_DONE;
}
