/* SPDX-License-Identifier: Apache-2.0 */
#include "state/record_table.h"

#include <stdint.h>
#include <string.h>

const struct record_field *record_field_find(const struct record_field *fields, const char *key)
{
        while (fields->key != NULL && strcmp(fields->key, key) != 0)
                fields++;
        return fields;
}

static bool is_zero(const struct record_field *field, const char *record)
{
        static const char zeroes[sizeof(uint64_t)];

        if (field->type == RECORD_TEXT)
                return record[field->offset] == '\0';
        if (field->type == RECORD_MEMBERS)
                return is_zero(field->members, record + field->offset);
        return memcmp(record + field->offset, zeroes, field->size) == 0;
}

bool record_field_is_written(const struct record_field *fields, const struct record_field *field, const void *record)
{
        if (field->with == NULL)
                return true;
        /* most rows name themselves */
        return !is_zero(strcmp(field->with, field->key) == 0 ? field : record_field_find(fields, field->with), record);
}
