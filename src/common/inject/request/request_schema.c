/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/request/request_schema.h"

#include <limits.h>
#include <string.h>

#include "base/json_value.h"
#include "base/schema.h"
#include "container/lookup.h"

#define STRING "type", "string", "minLength", 1, "maxLength", JSON_VALUE_STRING_MAX

json_t *request_schema_string(const char *pattern)
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
        json_t *name = json_pack("{s:s, s:i, s:s}", "type", "string", "maxLength", JSON_VALUE_ID_MAX, "pattern",
                                 SCHEMA_NAME_PATTERN);
        json_t *user =
                json_pack("{s:s, s:i, s:I}", "type", "integer", "minimum", 0, "maximum", (json_int_t)UINT32_MAX - 1);
        json_t *members =
                json_pack("{s:O, s:O, s:o, s:o, s:o, s:o, s:o, s:o}", "pid", pid, "id", name, "runtime", runtimes(),
                          "user", user, "pod", request_schema_string("^[a-z0-9-]+/[a-z0-9.-]+$"), "container",
                          request_schema_string("^[a-z0-9-]+$"), "unit",
                          request_schema_string("^[A-Za-z0-9:_\\\\@-][A-Za-z0-9:._\\\\@-]*\\.(service|scope)$"),
                          "procDir", request_schema_string("^/"));
        json_t *object =
                json_pack("{s:s, s:o, s:b, s:[{s:[s]}, {s:[s]}, {s:[s]}, {s:[s]}, {s:[s]}], s:{s:[s], s:[s], s:[s]}}",
                          "type", "object", "properties", members, "additionalProperties", 0, "oneOf", "required",
                          "pid", "required", "id", "required", "pod", "required", "unit", "required", "procDir",
                          "dependentRequired", "runtime", "id", "user", "id", "container", "pod");

        (void)programs;
        return json_pack("{s:[o, o, o]}", "anyOf", pid, name, object);
}

json_t *request_schema_options(const struct key_table *table, unsigned programs)
{
        (void)table;
        (void)programs;
        return json_pack("{s:[{s:s, s:i}, {s:s, s:{s:s, s:i, s:i}}]}", "anyOf", "type", "string", "maxLength",
                         JSON_VALUE_STRING_MAX, "type", "array", "items", STRING);
}
