/* SPDX-License-Identifier: Apache-2.0 */
#include "base/schema.h"

#include <string.h>

#include "base/json.h"
#include "base/json_value.h"
#include "base/reply.h"
#include "base/words.h"

#define SIZE_PATTERN "^0*[1-9][0-9]*([kKmMgGtT]i?)?$"
#define SHARE_PATTERN "^0*([1-9][0-9]*([kKmMgGtT]i?)?|([1-9][0-9]?|100)%)$"

const char *const schema_success[] = { "Success", NULL };

static json_t *of_string(size_t maximum, const char *pattern)
{
        json_t *schema = json_pack("{s:s, s:i, s:I}", "type", "string", "minLength", 1, "maxLength",
                                   (json_int_t)(maximum > 0 ? maximum : JSON_VALUE_STRING_MAX));

        if (schema != NULL && pattern != NULL)
                (void)json_object_set_new(schema, "pattern", json_string(pattern));
        return schema;
}

json_t *schema_of_words(const char *const *words)
{
        return json_pack("{s:o}", "enum", json_strings(words));
}

static json_t *of_size(const char *pattern)
{
        return json_pack("{s:[{s:s, s:i}, o]}", "anyOf", "type", "integer", "minimum", 1, of_string(23, pattern));
}

/* A value of a request. */
static json_t *of_type(const struct key *key, unsigned programs)
{
        switch (key->type) {
        case KEY_BOOLEAN:
                return json_pack("{s:s}", "type", "boolean");
        case KEY_INTEGER:
                return json_pack("{s:s, s:I, s:I}", "type", "integer", "minimum", (json_int_t)key->minimum, "maximum",
                                 (json_int_t)key->maximum);
        case KEY_USER_ID:
                return json_pack("{s:s, s:i, s:I}", "type", "integer", "minimum", 0, "maximum",
                                 (json_int_t)UINT32_MAX - 1);
        case KEY_STRING:
                return of_string((size_t)key->maximum, key->pattern);
        case KEY_TEXT:
                return of_string((size_t)key->maximum, "^[^\\u0000-\\u001f\\u007f]*$");
        case KEY_NAME:
                return of_string(JSON_VALUE_ID_MAX, SCHEMA_NAME_PATTERN);
        case KEY_PATH:
                return of_string((size_t)key->maximum, "^/");
        case KEY_WORD:
                return schema_of_words(key->words);
        case KEY_SIZE:
                return of_size(SIZE_PATTERN);
        case KEY_SIZE_SHARE:
                return of_size(SHARE_PATTERN);
        case KEY_STRINGS:
                return json_pack("{s:s, s:o}", "type", "object", "additionalProperties", of_string(0, NULL));
        case KEY_ARRAY:
                return json_pack("{s:s, s:o}", "type", "array", "items",
                                 key->members != NULL ? schema_of_keys(key->members, programs, /* texts= */ false)
                                                      : json_pack("{s:s}", "type", "string"));
        case KEY_ANY:
                return json_pack("{s:s}", "type", "string");
        case KEY_COUNT:
                return json_pack("{s:s, s:i}", "type", "integer", "minimum", 0);
        case KEY_OBJECT:
                return schema_of_keys(key->members, programs, /* texts= */ false);
        default:
                return json_object();
        }
}

static json_t *of_value(const struct key_table *table, const struct key *key, unsigned programs)
{
        return key->schema != NULL ? key->schema(table, programs) : of_type(key, programs);
}

json_t *schema_of_value(const struct key_table *table, const char *name, unsigned programs)
{
        const struct key *key = key_find(table, programs, name);

        return key != NULL ? of_value(table, key, programs) : json_object();
}

static json_t *of_text_word(const char *const *words)
{
        json_t *list = json_strings(words);

        (void)json_array_append_new(list, json_string(""));
        (void)json_array_append_new(list, json_null());
        return json_pack("{s:o}", "enum", list);
}

/* The text of a number has digits alone, where a pattern says what a text may have. */
static json_t *of_text_string(const struct key *key)
{
        json_t *schema = json_pack("{s:[s, s, s, s], s:I}", "type", "string", "integer", "boolean", "null", "maxLength",
                                   (json_int_t)(key->maximum > 0 ? key->maximum : JSON_VALUE_STRING_MAX));

        if (schema != NULL && key->pattern != NULL) {
                (void)json_object_set_new(schema, "pattern", json_string(key->pattern));
                (void)json_object_set_new(schema, "minimum", json_integer(0));
        }
        return schema;
}

/* The same where values are texts: a number or a boolean may be written as one, and "" and null say nothing. */
static json_t *of_text(const struct key *key)
{
        switch (key->type) {
        case KEY_BOOLEAN:
                return json_pack("{s:[s, s, s, n, b, b]}", "enum", "true", "false", "", 1, 0);
        case KEY_SIZE:
                return json_pack("{s:[o, {s:s}, {s:s, s:i}]}", "anyOf", of_size(SIZE_PATTERN), "type", "null", "type",
                                 "string", "maxLength", 0);
        case KEY_WORD:
                return of_text_word(key->words);
        default:
                return of_text_string(key);
        }
}

/* The default as JSON: true, 30, "auto". */
static json_t *preset_of(const struct key *key)
{
        json_t *value = key->type == KEY_BOOLEAN || key->type == KEY_INTEGER
                                ? json_loads(key->preset, JSON_DECODE_ANY, NULL)
                                : NULL;

        return value != NULL ? value : json_string(key->preset);
}

json_t *schema_of_keys(const struct key_table *table, unsigned programs, bool texts)
{
        json_t *properties = json_object();
        json_t *required = json_array();

        for (size_t i = 0; i < table->count; i++) {
                const struct key *key = &table->rows[i];
                json_t *schema;

                if ((key->programs & programs) == 0)
                        continue;
                if ((key->required & programs) != 0)
                        (void)json_array_append_new(required, json_string(key->name));
                schema = texts ? of_text(key) : of_value(table, key, programs);
                (void)json_object_set_new(schema, "description", json_string(key->help));
                if (key->preset != NULL)
                        (void)json_object_set_new(schema, "default", preset_of(key));
                (void)json_object_set_new(properties, key->name, schema);
        }
        return json_pack("{s:s, s:o, s:o, s:b}", "type", "object", "properties", properties, "required", required,
                         "additionalProperties", texts); /* Kubernetes adds keys of its own */
}

static json_t *replies_of(const struct schema *schema)
{
        unsigned programs = schema->reply_programs != 0 ? schema->reply_programs : schema->programs;
        json_t *forms = json_array();

        for (const struct schema_form *form = schema->replies; form->members != NULL; form++) {
                json_t *members;

                if ((form->programs & programs) == 0)
                        continue;
                members = schema_of_keys(form->members, programs, /* texts= */ false);
                (void)json_object_set_new(members, "title", json_string(form->title));
                (void)json_array_append_new(forms, members);
        }
        return json_pack("{s:o}", "anyOf", forms);
}

const struct key_table *schema_request(const struct schema *schema)
{
        return schema->request_of != NULL ? schema->request_of() : schema->request;
}

bool schema_has_words(const struct schema *schema)
{
        return schema != NULL && !schema->texts && schema->programs != 0 && schema_request(schema) != NULL;
}

json_t *schema_of_program(const char *name, const struct schema *schema)
{
        json_t *definitions = json_object();

        if (schema->make_request != NULL)
                (void)json_object_set_new(definitions, "request",
                                          schema->make_request(schema->request, schema->programs));
        else if (schema_request(schema) != NULL)
                (void)json_object_set_new(definitions, "request",
                                          schema_of_keys(schema_request(schema), schema->programs, schema->texts));
        if (schema->replies != NULL)
                (void)json_object_set_new(definitions, "reply", replies_of(schema));
        if (schema_has_words(schema)) {
                const struct words words = { name, schema_request(schema), schema->programs, NULL };

                (void)json_object_set_new(definitions, "words", words_describe(&words));
        }
        return json_pack("{s:s, s:s, s:o}", "$schema", SCHEMA_DRAFT, "title", name, "$defs", definitions);
}

/* ---- the members of an object of a reply, listed once: of the list are made the rows that describe the object */

void members_put(struct members *members, const char *name, bool required, json_t *value)
{
        if (members->object == NULL)
                members->object = json_object();
        if (value == NULL)
                members->failed = members->failed || required;
        else if (json_object_set_new(members->object, name, value) < 0) /* which frees the value */
                members->failed = true;
}

json_t *members_end(struct members *members)
{
        json_t *object = members->object != NULL ? members->object : json_object();

        if (!members->failed)
                return object;
        json_decref(object);
        return NULL;
}

json_t *members_text(const char *text)
{
        return text[0] != '\0' ? reply_printable(text) : NULL;
}

json_t *members_true(bool value)
{
        return value ? json_true() : NULL;
}
