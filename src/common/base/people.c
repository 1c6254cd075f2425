/* SPDX-License-Identifier: Apache-2.0 */
#include "base/people.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"

#define TEXT_MAX (PATH_MAX + 512)

struct text {
        char *start;
        size_t size;
        size_t length;
};

static void add(struct text *text, const char *part, size_t length)
{
        if (length > text->size - 1 - text->length)
                length = text->size - 1 - text->length;
        memcpy(text->start + text->length, part, length);
        text->length += length;
        text->start[text->length] = '\0';
}

static void add_bytes(struct text *text, uint64_t bytes)
{
        char number[TEXT_BYTES_SIZE];

        text_of_bytes(bytes, number);
        add(text, number, strlen(number));
}

/* 40s, 12m, 5h, 3d: how long ago a time was. */
static void add_age(struct text *text, uint64_t since)
{
        static const struct {
                uint64_t seconds;
                char unit;
        } units[] = { { 86400, 'd' }, { 3600, 'h' }, { 60, 'm' }, { 1, 's' } };
        const uint64_t now = clock_seconds();
        const uint64_t age = now > since ? now - since : 0;
        char number[32];
        size_t i = 0;

        while (age < units[i].seconds && units[i].seconds > 1)
                i++;
        (void)snprintf(number, sizeof number, "%llu%c", (unsigned long long)(age / units[i].seconds), units[i].unit);
        add(text, number, strlen(number));
}

static bool is_there(const json_t *value)
{
        return value != NULL && !json_is_false(value) && !json_is_null(value) &&
               !(json_is_array(value) && json_array_size(value) == 0) &&
               !(json_is_string(value) && json_string_length(value) == 0);
}

/* sort: '%', '@', or 0. */
static void add_scalar(struct text *text, const json_t *value, char sort)
{
        char number[32];

        if (json_is_string(value))
                add(text, json_string_value(value), json_string_length(value));
        else if (json_is_integer(value) && sort == '%')
                add_bytes(text, (uint64_t)json_integer_value(value));
        else if (json_is_integer(value) && sort == '@')
                add_age(text, (uint64_t)json_integer_value(value));
        else if (json_is_integer(value)) {
                (void)snprintf(number, sizeof number, "%lld", (long long)json_integer_value(value));
                add(text, number, strlen(number));
        } else if (json_is_boolean(value))
                add(text, json_is_true(value) ? "yes" : "no", json_is_true(value) ? 3 : 2);
}

/* As far as objects go: *path and *length are then what is left of it. */
static const json_t *find(const json_t *value, const char **path, size_t *length)
{
        while (*length > 0 && json_is_object(value)) {
                const char *dot = memchr(*path, '.', *length);
                size_t part = dot != NULL ? (size_t)(dot - *path) : *length;

                value = json_object_getn(value, *path, part);
                part += dot != NULL ? 1 : 0;
                *path += part;
                *length -= part;
        }
        return value;
}

/* "pod/container", of an element: the first that it has; NULL: none. */
static const json_t *find_any(const json_t *element, const char *path, size_t length)
{
        for (;;) {
                const char *slash = memchr(path, '/', length);
                const size_t part = slash != NULL ? (size_t)(slash - path) : length;
                const char *rest = path;
                size_t left = part;
                const json_t *found = find(element, &rest, &left);

                if ((left == 0 && found != NULL) || slash == NULL)
                        return left == 0 ? found : NULL;
                path = slash + 1;
                length -= part + 1;
        }
}

static void add_path(struct text *text, const json_t *value, const char *path, size_t length, char sort)
{
        value = find(value, &path, &length);
        if (length == 0 && !json_is_array(value))
                add_scalar(text, value, sort);
        /* an array in one of the replies' arrays is a list of words */
        for (size_t i = 0; i < json_array_size(value); i++) {
                if (i > 0)
                        add(text, ",", 1);
                add_scalar(text, find_any(json_array_get(value, i), path, length), sort);
        }
}

/* "a.b|a.c%" of so many bytes. */
static void add_value(struct text *text, const json_t *value, const char *path, size_t length)
{
        const char *end = path + length;
        size_t before = text->length;
        char sort = '\0';

        if (length > 0 && (end[-1] == '%' || end[-1] == '@'))
                sort = *--end;

        for (;;) {
                const char *bar = memchr(path, '|', (size_t)(end - path));

                add_path(text, value, path, (size_t)((bar != NULL ? bar : end) - path), sort);
                if (bar == NULL || text->length > before)
                        return;
                path = bar + 1;
        }
}

static bool applies(const char *when, const json_t *value)
{
        while (when != NULL && *when != '\0') {
                bool no = *when == '!';
                const json_t *found;
                const char *path;
                size_t length;
                size_t left;

                when += no ? 1 : 0;
                length = strcspn(when, ",");
                path = when;
                left = length;
                found = find(value, &path, &left);
                if ((left == 0 && is_there(found)) == no)
                        return false;
                when += length + (when[length] == ',' ? 1 : 0);
        }
        return true;
}

static int say_line(const char *line, const json_t *value)
{
        static char buffer[TEXT_MAX];
        struct text text = { .start = buffer, .size = sizeof buffer };

        while (*line != '\0') {
                size_t length = strcspn(line, "{");

                add(&text, line, length);
                line += length;
                if (*line == '{') {
                        length = strcspn(line, "}");
                        add_value(&text, value, line + 1, length - 1);
                        line += length + 1;
                }
        }
        return file_write_all(STDOUT_FILENO, buffer, text_end_line(buffer, sizeof buffer));
}

/* The rows of a table that a form applies to. */
struct rows {
        const struct people_form *form;
        const json_t *array;
};

static void cell(const void *argument, size_t row, size_t column, char *ret_text, size_t size)
{
        const struct rows *rows = argument;
        const char *path = rows->form->columns[column].path;
        struct text text = { .start = ret_text, .size = size };

        ret_text[0] = '\0';
        add_value(&text, json_array_get(rows->array, row), path, strlen(path));
}

static int say_table(const struct people_form *form, const json_t *array)
{
        const struct rows rows = { .form = form, .array = array };
        const char *heads[TABLE_COLUMNS_MAX];
        size_t columns = 0;

        while (columns < TABLE_COLUMNS_MAX && form->columns[columns].head != NULL) {
                heads[columns] = form->columns[columns].head;
                columns++;
        }
        return json_array_size(array) > 0 ? table_say(heads, columns, json_array_size(array), cell, &rows) : 0;
}

int people_say(const struct people_form *forms, const json_t *reply)
{
        int r = 0;

        for (; r == 0 && (forms->line != NULL || forms->columns != NULL); forms++) {
                const char *path = forms->rows != NULL ? forms->rows : "";
                size_t length = strlen(path);
                const json_t *array = forms->rows != NULL ? find(reply, &path, &length) : NULL;

                if (forms->columns != NULL)
                        r = say_table(forms, array);
                else if (forms->rows == NULL && applies(forms->when, reply))
                        r = say_line(forms->line, reply);
                for (size_t i = 0; r == 0 && forms->columns == NULL && i < json_array_size(array); i++)
                        if (applies(forms->when, json_array_get(array, i)))
                                r = say_line(forms->line, json_array_get(array, i));
        }
        return r;
}

static void say_error(const char *prefix, const char *text)
{
        char line[TEXT_MAX];

        (void)snprintf(line, sizeof line, "%s: %s", prefix, text);
        /* there is no other way to report */
        (void)file_write_all(STDERR_FILENO, line, text_end_line(line, sizeof line));
}

void people_complain(const char *program, const json_t *reply)
{
        const char *message = json_string_value(json_object_get(reply, "message"));
        const char *hint = json_string_value(json_object_get(json_object_get(reply, "error"), "hint"));

        if (message == NULL)
                return;
        say_error(program, message);
        if (hint != NULL)
                say_error("hint", hint);
}

/* ---- a table for people: a line of heads, and a line for each row, its cells as wide as the widest */

#define CELL_MAX (PATH_MAX + 256)

/* In characters: of UTF-8 all bytes but those that go on with one. */
static size_t width_of(const char *text)
{
        size_t width = 0;

        for (; *text != '\0'; text++)
                width += ((unsigned char)*text & 0xc0) != 0x80;
        return width;
}

int table_say(const char *const *heads, size_t columns, size_t rows, table_cell *put, const void *argument)
{
        static char text[CELL_MAX];
        static char padded[2 * CELL_MAX];
        size_t widths[TABLE_COLUMNS_MAX];
        int r = 0;

        assert(columns <= TABLE_COLUMNS_MAX);
        for (size_t column = 0; column < columns; column++) {
                widths[column] = strlen(heads[column]);
                for (size_t row = 0; row < rows; row++) {
                        put(argument, row, column, text, sizeof text);
                        text_escape(text, sizeof text);
                        if (width_of(text) > widths[column])
                                widths[column] = width_of(text);
                }
        }
        for (size_t line = 0; r == 0 && line <= rows; line++)
                for (size_t column = 0; r == 0 && column < columns; column++) {
                        bool last = column == columns - 1;

                        if (line == 0)
                                (void)snprintf(text, sizeof text, "%s", heads[column]);
                        else
                                put(argument, line - 1, column, text, sizeof text);
                        text_escape(text, sizeof text);
                        (void)snprintf(padded, sizeof padded, "%s%*s", text,
                                       last ? 1 : (int)(widths[column] - width_of(text)) + 2, last ? "\n" : "");
                        r = file_write_all(STDOUT_FILENO, padded, strlen(padded));
                }
        return r;
}
