/* SPDX-License-Identifier: Apache-2.0 */
#include "state/record_flat.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is left of a text. It ends with '\0', which is in no JSON. */
struct rest {
        const char *text;
};

static bool skip(struct rest *rest, const char *expected)
{
        const size_t length = strlen(expected);

        if (strncmp(rest->text, expected, length) != 0)
                return false;
        rest->text += length;
        return true;
}

/* The text between quotes: printable ASCII without a backslash stands for itself. */
static bool take_text(struct rest *rest, const char **ret_start, size_t *ret_length)
{
        const char *end;

        if (!skip(rest, "\""))
                return false;
        for (end = rest->text; *end >= ' ' && *end <= '~' && *end != '"'; end++)
                if (*end == '\\')
                        return false;
        *ret_start = rest->text;
        *ret_length = (size_t)(end - rest->text);
        rest->text = end;
        return skip(rest, "\"");
}

static bool read_text(const struct record_field *field, struct rest *rest, char *ret_text)
{
        const char *start;
        size_t length;

        if (!take_text(rest, &start, &length) || length >= field->size)
                return false;
        (void)memcpy(ret_text, start, length);
        ret_text[length] = '\0';
        return true;
}

static bool read_number(const struct record_field *field, struct rest *rest, void *ret_number)
{
        const char *digits = rest->text + (rest->text[0] == '-' ? 1 : 0);
        size_t length = strspn(digits, "0123456789");
        uint64_t number;

        if (length == 0 || (digits[0] == '0' && (length > 1 || digits > rest->text)))
                return false;
        errno = 0;
        number = (uint64_t)strtoll(rest->text, NULL, 10);
        if (errno != 0 || (field->size == sizeof(uint32_t) && number > UINT32_MAX))
                return false;
        if (field->size == sizeof(uint32_t))
                *(uint32_t *)ret_number = (uint32_t)number;
        else
                *(uint64_t *)ret_number = number;
        rest->text = digits + length; /* what makes it no integer is no ',' or '}' */
        return true;
}

static bool read_boolean(struct rest *rest, bool yes, bool *ret_boolean)
{
        *ret_boolean = skip(rest, "true") ? yes : !yes;
        return *ret_boolean == yes || skip(rest, "false");
}

static bool read_field(const struct record_field *field, struct rest *rest, char *record)
{
        void *place = record + field->offset;

        switch (field->type) {
        case RECORD_TEXT:
                return read_text(field, rest, place);
        case RECORD_NUMBER:
                return read_number(field, rest, place);
        case RECORD_BOOLEAN:
        case RECORD_NOT:
                return read_boolean(rest, field->type == RECORD_BOOLEAN, place);
        default:
                return false;
        }
}

static bool is_key(const struct record_field *field, const char *key, size_t length)
{
        return strncmp(field->key, key, length) == 0 && field->key[length] == '\0';
}

bool record_flat_read(const struct record_table *table, const char *text, size_t length, void *ret_record)
{
        const struct record_field *field = table->fields;
        struct rest rest = { text };
        const char *key;
        size_t key_length;
        uint32_t version;

        if (!skip(&rest, "{\"version\":") ||
            !read_number(&(struct record_field){ .size = sizeof version }, &rest, &version) ||
            version != (uint32_t)table->version)
                return false;
        while (skip(&rest, ",")) {
                if (!take_text(&rest, &key, &key_length) || !skip(&rest, ":"))
                        return false;
                while (field->key != NULL && field->optional && !is_key(field, key, key_length))
                        field++;
                if (field->key == NULL || !is_key(field, key, key_length) || !read_field(field, &rest, ret_record))
                        return false;
                field++;
        }
        while (field->key != NULL && field->optional)
                field++;
        return field->key == NULL && skip(&rest, "}") && rest.text == text + length;
}

/* A text while it is made. */
struct made {
        char *end;
        size_t room; /* behind the end */
        bool failed; /* it does not fit, or this is no flat record */
};

static void put(struct made *made, const char *text, size_t length)
{
        made->failed = made->failed || length > made->room;
        if (made->failed)
                return;
        (void)memcpy(made->end, text, length);
        made->end += length;
        made->room -= length;
}

/* What read_text() reads: other texts are to be escaped. */
static void put_text(struct made *made, const char *text)
{
        size_t length = 0;

        while (text[length] >= ' ' && text[length] <= '~' && text[length] != '"' && text[length] != '\\')
                length++;
        made->failed = made->failed || text[length] != '\0';
        put(made, "\"", 1);
        put(made, text, length);
        put(made, "\"", 1);
}

static void put_number(struct made *made, long long number)
{
        char digits[24];

        put(made, digits, (size_t)snprintf(digits, sizeof digits, "%lld", number));
}

static void put_value(struct made *made, const struct record_field *field, const void *place)
{
        const char *word;

        switch (field->type) {
        case RECORD_TEXT:
                put_text(made, place);
                return;
        case RECORD_NUMBER:
                put_number(made, field->size == sizeof(uint32_t) ? *(const uint32_t *)place
                                                                 : (long long)*(const uint64_t *)place);
                return;
        case RECORD_BOOLEAN:
        case RECORD_NOT:
                word = *(const bool *)place == (field->type == RECORD_BOOLEAN) ? "true" : "false";
                put(made, word, strlen(word));
                return;
        default:
                made->failed = true;
        }
}

size_t record_flat_write(const struct record_table *table, const void *record, char *buffer, size_t size)
{
        static const char begin[] = "{\"version\":";
        struct made made = { .end = buffer, .room = size };

        put(&made, begin, sizeof begin - 1);
        put_number(&made, table->version);
        for (const struct record_field *field = table->fields; field->key != NULL; field++) {
                if (!record_field_is_written(table->fields, field, record))
                        continue;
                put(&made, ",", 1);
                put_text(&made, field->key);
                put(&made, ":", 1);
                put_value(&made, field, (const char *)record + field->offset);
        }
        put(&made, "}", 1);
        return made.failed ? 0 : size - made.room;
}

static size_t packed_size(const struct record_field *field, const char *packed)
{
        return field->type == RECORD_TEXT ? strlen(packed) + 1 : field->size;
}

size_t record_flat_pack(const struct record_table *table, const void *record, char *buffer)
{
        char *end = buffer;

        for (const struct record_field *field = table->fields; field->key != NULL; field++) {
                const char *place = (const char *)record + field->offset;
                size_t size = packed_size(field, place);

                (void)memcpy(end, place, size);
                end += size;
        }
        return (size_t)(end - buffer);
}

void record_flat_unpack(const struct record_table *table, const char *packed, void *ret_record)
{
        for (const struct record_field *field = table->fields; field->key != NULL; field++) {
                size_t size = packed_size(field, packed);

                (void)memcpy((char *)ret_record + field->offset, packed, size);
                packed += size;
        }
}

const char *record_flat_text(const struct record_table *table, const char *packed, const char *key)
{
        const struct record_field *field = table->fields;

        for (; strcmp(field->key, key) != 0; field++)
                packed += packed_size(field, packed);
        return packed;
}
