/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/request/request_keys.h"

#include <string.h>

#include "base/json_value.h"
#include "base/schema.h"
#include "inject/request/source.h"

#define STRING "type", "string", "minLength", 1, "maxLength", JSON_VALUE_STRING_MAX

json_t *request_schema_string(const char *pattern)
{
        return json_pack("{s:s, s:i, s:i, s:s}", STRING, "pattern", pattern);
}

json_t *request_schema_options(const struct key_table *table, unsigned programs)
{
        (void)table;
        (void)programs;
        return json_pack("{s:[{s:s, s:i}, {s:s, s:{s:s, s:i, s:i}}]}", "anyOf", "type", "string", "maxLength",
                         JSON_VALUE_STRING_MAX, "type", "array", "items", STRING);
}

/* ---- the JSON Schemas of requests whose entries may be of any kind: for programs that link all kinds */

/* The request of a helper as an entry: with a type, and without what is said once for the batch. */
static json_t *entry_of(const struct source_kind *kind)
{
        json_t *entry = schema_of_keys(kind->keys, 1, /* texts= */ false);
        json_t *required = json_object_get(entry, "required");
        json_t *properties = json_object_get(entry, "properties");

        (void)json_object_set_new(properties, "type", json_pack("{s:s}", "const", kind->word));
        for (size_t i = 0; i < kind->keys->count; i++)
                if ((kind->keys->rows[i].traits & REQUEST_OF_CALL) != 0)
                        (void)json_object_del(properties, kind->keys->rows[i].name);
        for (size_t i = json_array_size(required); i-- > 0;)
                if (strcmp(json_string_value(json_array_get(required, i)), "container") == 0)
                        (void)json_array_remove(required, i); /* then the batch names it */
        (void)json_array_insert_new(required, 0, json_string("type"));
        (void)json_object_set_new(entry, "title", json_string(kind->word));
        return entry;
}

/* "destination", "type", "source", "options". */
static json_t *oci_entry(void)
{
        return json_pack("{s:s, s:s, s:{s:o, s:o, s:o, s:o}, s:[s], s:b}", "title", "OCI mount", "type", "object",
                         "properties", "destination", json_pack("{s:s, s:s}", "type", "string", "pattern", "^/"),
                         "type", json_pack("{s:s}", "type", "string"), "source", json_pack("{s:s}", "type", "string"),
                         "options", request_schema_options(NULL, 0), "required", "destination", "additionalProperties",
                         0);
}

static json_t *entry(void)
{
        json_t *forms = json_array();

        for (const struct source_kind *const *kind = source_kinds; *kind != NULL; kind++)
                (void)json_array_append_new(forms, entry_of(*kind));
        (void)json_array_append_new(forms, oci_entry());
        return json_pack("{s:o}", "anyOf", forms);
}

static json_t *mounts(void)
{
        return json_pack("{s:[o, {s:s, s:i, s:i, s:o}]}", "anyOf", entry(), "type", "array", "minItems", 1, "maxItems",
                         REQUEST_ENTRIES_MAX, "items", entry());
}

json_t *batch_schema(const struct key_table *table, unsigned programs)
{
        json_t *schema = schema_of_keys(table, programs, /* texts= */ false);

        (void)json_object_update_new(json_object_get(json_object_get(schema, "properties"), "mounts"), mounts());
        return schema;
}

json_t *batch_schema_of_annotation(const struct key_table *table, unsigned programs)
{
        (void)table;
        (void)programs;
        return json_pack("{s:[o, o]}", "anyOf", entry(), mounts());
}
