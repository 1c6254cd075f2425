/* SPDX-License-Identifier: Apache-2.0 */
#include "state/record_table.h"

#include <stdint.h>
#include <string.h>

#include "base/schema.h"

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

/* ---- the table of a record (state/record.h) -> a JSON Schema */

static json_t *of_fields(const struct record_field *fields);

static json_t *of_field(const struct record_field *field)
{
        switch (field->type) {
        case RECORD_TEXT:
        case RECORD_STRING:
                return json_pack("{s:s}", "type", "string");
        case RECORD_NUMBER:
                return json_pack("{s:s}", "type", "integer");
        case RECORD_BOOLEAN:
        case RECORD_NOT:
                return json_pack("{s:s}", "type", "boolean");
        case RECORD_WORD:
                return schema_of_words(field->words);
        case RECORD_ARRAY:
                return json_pack("{s:s}", "type", "array");
        case RECORD_MEMBERS:
                return of_fields(field->members);
        case RECORD_LIST:
                return json_pack("{s:s, s:o}", "type", "array", "items", of_fields(field->members));
        default:
                return json_pack("{s:s}", "type", "object");
        }
}

static json_t *of_fields(const struct record_field *fields)
{
        json_t *properties = json_object();
        json_t *required = json_array();

        for (; fields->key != NULL; fields++) {
                json_t *schema = of_field(fields);

                if (fields->help != NULL)
                        (void)json_object_set_new(schema, "description", json_string(fields->help));
                (void)json_object_set_new(properties, fields->key, schema);
                if (!fields->optional && fields->with == NULL)
                        (void)json_array_append_new(required, json_string(fields->key));
        }
        return json_pack("{s:s, s:o, s:o, s:b}", "type", "object", "properties", properties, "required", required,
                         "additionalProperties", 0);
}

json_t *record_schema(const char *title, const struct record_table *table)
{
        json_t *schema = of_fields(table->fields);

        (void)json_object_set_new(json_object_get(schema, "properties"), "version",
                                  json_pack("{s:i}", "const", table->version));
        (void)json_array_insert_new(json_object_get(schema, "required"), 0, json_string("version"));
        (void)json_object_set_new(schema, "$schema", json_string(SCHEMA_DRAFT));
        (void)json_object_set_new(schema, "title", json_string(title));
        return schema;
}
