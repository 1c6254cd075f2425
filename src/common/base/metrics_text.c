/* SPDX-License-Identifier: Apache-2.0 */
#include "base/metrics_text.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/reply.h"

static void put_bytes(struct metrics_text *text, const char *bytes, size_t length)
{
        if (text->length + length > text->room) {
                size_t room = 2 * (text->length + length);
                char *grown = text->failed ? NULL : realloc(text->bytes, room);

                if (grown == NULL) {
                        text->failed = true;
                        return;
                }
                text->bytes = grown;
                text->room = room;
        }
        (void)memcpy(text->bytes + text->length, bytes, length);
        text->length += length;
}

static void put(struct metrics_text *text, const char *part)
{
        put_bytes(text, part, strlen(part));
}

void metrics_family(struct metrics_text *text, const char *name, const char *type, const char *help)
{
        const char *const parts[] = { "# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n" };

        for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
                put(text, parts[i]);
}

void metrics_sample(struct metrics_text *text, const char *name)
{
        put(text, name);
        text->labeled = false;
}

/* Backslash, double quote and line feed are escaped. What is not UTF-8 would have the whole file refused. */
void metrics_label(struct metrics_text *text, const char *key, const char *value)
{
        json_t *printable = reply_printable(value);
        const char *at = json_string_value(printable) ?: "";

        put(text, text->labeled ? "," : "{");
        text->labeled = true;
        put(text, key);
        put(text, "=\"");
        while (*at != '\0') {
                size_t plain = strcspn(at, "\\\"\n");

                put_bytes(text, at, plain);
                at += plain;
                if (*at != '\0') {
                        put(text, *at == '\n' ? "\\n" : *at == '"' ? "\\\"" : "\\\\");
                        at++;
                }
        }
        put(text, "\"");
        json_decref(printable);
}

static void end_sample(struct metrics_text *text, const char *value)
{
        put(text, text->labeled ? "} " : " ");
        put(text, value);
        put(text, "\n");
}

void metrics_value(struct metrics_text *text, uint64_t value)
{
        char number[32];

        (void)snprintf(number, sizeof number, "%" PRIu64, value);
        end_sample(text, number);
}

void metrics_value_seconds(struct metrics_text *text, uint64_t microseconds)
{
        char number[48];

        (void)snprintf(number, sizeof number, "%" PRIu64 ".%06" PRIu64, microseconds / 1000000, microseconds % 1000000);
        end_sample(text, number);
}

void metrics_gauge(struct metrics_text *text, const char *name, const char *help, uint64_t value)
{
        metrics_family(text, name, "gauge", help);
        metrics_sample(text, name);
        metrics_value(text, value);
}

int metrics_say(struct metrics_text *text)
{
        int r = text->failed ? -1 : file_write_all(STDOUT_FILENO, text->bytes, text->length);

        free(text->bytes);
        *text = (struct metrics_text){};
        return r < 0 ? EXIT_FAILED : EXIT_DONE;
}
