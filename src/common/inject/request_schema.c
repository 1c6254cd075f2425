/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/request_schema.h"

#include <limits.h>
#include <string.h>

#include "base/json_value.h"
#include "base/schema.h"
#include "container/lookup.h"
#include "inject/request.h"

#define STRING "type", "string", "minLength", 1, "maxLength", JSON_VALUE_STRING_MAX
#define NAME_PATTERN "^[A-Za-z0-9_+:@-][A-Za-z0-9_.+:@-]*$"

static json_t *string(const char *pattern)
{
        return json_pack("{s:s, s:i, s:i, s:s}", STRING, "pattern", pattern);
}

static json_t *runtimes(void)
{
        const char *names = container_lookup_runtimes();
        json_t *list = json_array();

        while (*names != '\0') {
                size_t length = strcspn(names, ", ");

                (void)json_array_append_new(list, json_stringn(names, length));
                names += length;
                names += strspn(names, ", ");
        }
        return json_pack("{s:o}", "enum", list);
}

json_t *request_schema_container(const struct key_table *table, unsigned programs)
{
        (void)table;
        json_t *pid = json_pack("{s:s, s:i, s:i}", "type", "integer", "minimum", 1, "maximum", INT_MAX);
        json_t *name =
                json_pack("{s:s, s:i, s:s}", "type", "string", "maxLength", JSON_VALUE_ID_MAX, "pattern", NAME_PATTERN);
        json_t *object = json_pack("{s:s, s:{s:O, s:O, s:o, s:o}, s:b, s:[{s:[s]}, {s:[s]}, {s:[s]}], s:{s:[s]}}",
                                   "type", "object", "properties", "pid", pid, "id", name, "runtime", runtimes(),
                                   "procDir", string("^/"), "additionalProperties", 0, "oneOf", "required", "pid",
                                   "required", "id", "required", "procDir", "dependentRequired", "runtime", "id");

        (void)programs;
        return json_pack("{s:[o, o, o]}", "anyOf", pid, name, object);
}

json_t *request_schema_source(const struct key_table *table, unsigned programs)
{
        (void)table;
        return string(programs == REQUEST_MOUNT_BIND ? "^/" : programs == REQUEST_MOUNT_BLOCK ? "^/|=" : ":/");
}

static json_t *side(json_t *required)
{
        return json_pack("{s:s, s:{s:o, s:o}, s:o, s:b}", "type", "object", "properties", "container",
                         request_schema_container(NULL, 0), "path", string("^/"), "required", required,
                         "additionalProperties", 0);
}

json_t *request_schema_from(const struct key_table *table, unsigned programs)
{
        (void)table;
        (void)programs;
        return side(json_pack("[s, s]", "container", "path"));
}

json_t *request_schema_to(const struct key_table *table, unsigned programs)
{
        (void)table;
        (void)programs;
        return side(json_pack("[s]", "path")); /* in a batch, which may name the container */
}

json_t *request_schema_options(const struct key_table *table, unsigned programs)
{
        (void)table;
        (void)programs;
        return json_pack("{s:[{s:s, s:i}, {s:s, s:{s:s, s:i, s:i}}]}", "anyOf", "type", "string", "maxLength",
                         JSON_VALUE_STRING_MAX, "type", "array", "items", STRING);
}

json_t *request_schema_mode(const struct key_table *table, unsigned programs)
{
        (void)table;
        (void)programs;
        return string("^0?[0-7]{1,4}$");
}

json_t *request_schema_lower(const struct key_table *table, unsigned programs)
{
        (void)table;
        (void)programs;
        return json_pack("{s:[o, {s:s, s:i, s:i, s:o}]}", "anyOf", string("^/"), "type", "array", "minItems", 1,
                         "maxItems", REQUEST_LAYERS_MAX, "items", string("^/"));
}

/* The request of a helper as an entry: with a type, and without what is said once for the batch. */
static json_t *entry_of(const struct key_table *table, const char *word)
{
        static const char *const once[] = { "dryRun", "timeoutSeconds" };
        json_t *entry = schema_of_keys(table, request_kind_of(word), /* texts= */ false);
        json_t *required = json_object_get(entry, "required");
        json_t *properties = json_object_get(entry, "properties");

        (void)json_object_set_new(properties, "type", json_pack("{s:s}", "const", word));
        for (size_t i = 0; i < sizeof once / sizeof once[0]; i++)
                (void)json_object_del(properties, once[i]); /* then it was not there */
        for (size_t i = json_array_size(required); i-- > 0;)
                if (strcmp(json_string_value(json_array_get(required, i)), "container") == 0)
                        (void)json_array_remove(required, i); /* then the batch names it */
        (void)json_array_insert_new(required, 0, json_string("type"));
        (void)json_object_set_new(entry, "title", json_string(word));
        return entry;
}

/* "destination", "type", "source", "options". */
static json_t *oci_entry(void)
{
        return json_pack("{s:s, s:s, s:{s:o, s:o, s:o, s:o}, s:[s], s:b}", "title", "OCI mount", "type", "object",
                         "properties", "destination", string("^/"), "type", string(".*"), "source", string(".*"),
                         "options", request_schema_options(NULL, 0), "required", "destination", "additionalProperties",
                         0);
}

static json_t *entry(const struct key_table *table)
{
        json_t *forms = json_array();

        for (size_t i = 0; request_kind_words[i] != NULL; i++)
                (void)json_array_append_new(forms, entry_of(table, request_kind_words[i]));
        (void)json_array_append_new(forms, oci_entry());
        return json_pack("{s:o}", "anyOf", forms);
}

json_t *request_schema_mounts(const struct key_table *table, unsigned programs)
{
        (void)programs;
        return json_pack("{s:s, s:i, s:i, s:o}", "type", "array", "minItems", 1, "maxItems", REQUEST_ENTRIES_MAX,
                         "items", entry(table));
}

json_t *request_schema_annotation(const struct key_table *table, unsigned programs)
{
        return json_pack("{s:[o, o]}", "anyOf", entry(table), request_schema_mounts(table, programs));
}
