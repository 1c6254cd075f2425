/* SPDX-License-Identifier: Apache-2.0 */
/* source_container_keys.c - the keys of mount-container-to-container, whose two sides are objects. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json_value.h"
#include "inject/request/request_keys.h"
#include "inject/request/source.h"

/* {"container":..., "path":...}: one side of container-to-container. */
static int take_side(const char *key, const json_t *value, const char **ret_path,
                     struct container_reference *ret_container, bool *ret_has, struct error *error)
{
        const char *member;
        json_t *part;
        int r = 0;

        if (!json_is_object(value))
                return json_value_refuse(error, key, "must be an object, {\"container\": ..., \"path\": ...}");
        json_object_foreach ((json_t *)value, member, part) {
                char path[192];

                (void)snprintf(path, sizeof path, "%s.%.128s", key, member);
                if (strcmp(member, "container") == 0) {
                        *ret_has = true;
                        r = container_reference_take(path, part, ret_container, error);
                } else if (strcmp(member, "path") == 0)
                        r = json_value_string(path, part, JSON_VALUE_STRING_MAX, ret_path, error);
                else
                        return fail_because(error, EINVAL, OPERATION_PARSE, path, "unknown key \"%s\"", path);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int take_from(void *object, const char *key, const json_t *value, struct error *error)
{
        struct request *request = object;
        bool has_container = false;
        int r = take_side(key, value, &request->source, &request->from, &has_container, error);

        if (r == 0 && !has_container)
                return json_value_refuse(error, key, "has no \"container\"");
        if (r == 0 && request->source == NULL)
                return json_value_refuse(error, key, "has no \"path\"");
        if (r == 0 && request->source[0] != '/')
                return json_value_refuse(error, key, "\"path\" must be absolute, as the container sees it");
        return r;
}

static int take_to(void *object, const char *key, const json_t *value, struct error *error)
{
        struct request *request = object;
        const char *path = NULL;
        int r = take_side(key, value, &path, &request->container, &request->has_container, error);

        if (r == 0 && path == NULL)
                return json_value_refuse(error, key, "has no \"path\"");
        return r < 0 ? r : request_set_target(request, key, path, error);
}

/* A side in words; take_side() reads it. */
static const struct key side_keys[] = {
        { "container", 1, 1, KEY_OWN, .members = &container_reference_members, .spelling = SPELLED_MEMBERS },
        { "path", 1, 1, KEY_PATH, .help = "as that container sees it" },
};
static const struct key_table side_members = KEY_TABLE(side_keys);

static json_t *schema_of_side(json_t *required)
{
        return json_pack("{s:s, s:{s:o, s:o}, s:o, s:b}", "type", "object", "properties", "container",
                         container_reference_schema(NULL, 0), "path", request_schema_string("^/"), "required", required,
                         "additionalProperties", 0);
}

static json_t *schema_of_from(const struct key_table *table, unsigned programs)
{
        (void)table;
        (void)programs;
        return schema_of_side(json_pack("[s, s]", "container", "path"));
}

static json_t *schema_of_to(const struct key_table *table, unsigned programs)
{
        (void)table;
        (void)programs;
        return schema_of_side(json_pack("[s]", "path")); /* in a batch, which may name the container */
}

static const char *const ids[] = { "auto", "remap", "host", NULL };

static const struct key keys[] = {
        { "from", 1, 1, KEY_OWN, .take = take_from, .schema = schema_of_from, .members = &side_members, .positional = 1,
          .spelling = SPELLED_SIDE,
          .help = "{\"container\": C, \"path\": \"/path\"}: the source, as that container sees it; C is a process id, "
                  "container id or name, or an object: " REQUEST_CONTAINER_OBJECTS },
        { "to", 1, 1, KEY_OWN, .take = take_to, .schema = schema_of_to, .members = &side_members, .positional = 1,
          .spelling = SPELLED_SIDE,
          .help = "{\"container\": C, \"path\": \"/path\"}: the target; it is made if missing" },
        { "mkdirSource", 1, 0, KEY_BOOLEAN, REQUEST_FIELD(mkdir_source),
          .help = "true: make a missing source directory, owned by its container's root" },
        { REQUEST_KEY_READ_ONLY },
        { REQUEST_KEY_RECURSIVE },
        { REQUEST_KEY_OPTIONS },
        { REQUEST_KEY_FALLBACK("none") },
        REQUEST_KEYS_OF_MOUNT(ids),
};
REQUEST_KEY_TABLE(source_container_keys, keys);
