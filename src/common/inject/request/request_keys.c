/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/request/request_keys.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"

const char *const request_ids_words[] = { "auto", "idmapped", "userns", "remap", "host", NULL };
const char *const request_fallback_words[] = { "none", "remap", NULL };
const char *const request_propagation_words[] = { "private", "slave", "shared", "unbindable", NULL };

int request_take_container(void *object, const char *key, const json_t *value, struct error *error)
{
        struct request *request = object;

        request->has_container = true;
        return container_reference_take(key, value, &request->container, error);
}

int request_set_target(struct request *request, const char *key, const char *path, struct error *error)
{
        int r = text_path_normal(path, request->target);

        if (r == -EINVAL)
                return json_value_refuse(error, key, "must be an absolute path, as the container sees it");
        if (r < 0)
                return json_value_refuse(error, key, "a component is longer than 255 bytes");
        if (strcmp(request->target, "/") == 0)
                return json_value_refuse(error, key, "the container's root itself cannot be a target");
        return 0;
}

int request_take_target(void *object, const char *key, const json_t *value, struct error *error)
{
        struct request *request = object;
        const char *path;
        int r = json_value_string(key, value, JSON_VALUE_STRING_MAX, &path, error);

        return r < 0 ? r : request_set_target(request, key, path, error);
}

int request_take_options(void *object, const char *key, const json_t *value, struct error *error)
{
        struct request *request = object;
        const char *text;
        const json_t *option;
        size_t i;
        int r;

        if (json_is_string(value)) {
                if (json_string_length(value) == 0)
                        return 0;
                r = json_value_string(key, value, JSON_VALUE_STRING_MAX, &text, error);
                return r < 0 ? r : mount_options_add_list(&request->options, text, error);
        }
        if (!json_is_array(value))
                return json_value_refuse(error, key, "must be a string or an array of strings");
        json_array_foreach (value, i, option)
                if ((r = json_value_string(key, option, JSON_VALUE_STRING_MAX, &text, error)) < 0 ||
                    (r = mount_options_add(&request->options, text, error)) < 0)
                        return r;
        return 0;
}

int request_take_propagation(void *object, const char *key, const json_t *value, struct error *error)
{
        struct request *request = object;
        size_t index;
        int r = key_word(request_propagation_words, key, value, &index, error);

        if (r == 0)
                request->options.propagation = mount_options_propagation(request_propagation_words[index]);
        return r;
}

int request_take_ids(void *object, const char *key, const json_t *value, struct error *error)
{
        struct request *request = object;
        size_t index;
        int r = key_word(request_ids_words, key, value, &index, error);

        if (r == 0)
                request->ids = (enum request_ids)index;
        return r;
}

int request_take_fallback(void *object, const char *key, const json_t *value, struct error *error)
{
        struct request *request = object;
        size_t index;
        int r = key_word(request_fallback_words, key, value, &index, error);

        if (r == 0)
                request->fallback = index == 0 ? FALLBACK_NONE : FALLBACK_REMAP;
        return r;
}

bool request_fallback_differs(const struct request *request)
{
        const struct key *row = key_find(request->keys, 1, "fallback");

        if (row == NULL || request->fallback == FALLBACK_UNSAID)
                return false;
        return strcmp(row->preset, request_fallback_words[request->fallback == FALLBACK_NONE ? 0 : 1]) != 0;
}

int request_take_cache(void *object, const char *key, const json_t *value, struct error *error)
{
        struct request *request = object;
        size_t index;
        int r = key_word(remap_cache_words, key, value, &index, error);

        if (r == 0)
                request->cache = (enum remap_cache)index;
        return r;
}

static const struct key batch_rows[] = {
        { REQUEST_KEY_CONTAINER(0) },
        { "mounts", 1, 0, KEY_OWN, .spelling = SPELLED_OBJECTS,
          .help = "at most 256 entries, each the request of another helper with a \"type\" (that of mount-bind is "
                  "bind), or an entry of an OCI configuration's \"mounts\" (destination, type, source, options)" },
        { REQUEST_KEY_REPLACE },
        { REQUEST_KEY_PERSIST },
        { "wanted", 1, 0, KEY_BOOLEAN, REQUEST_FIELD(wanted),
          .help = "true: instead of mounts: what is wanted in the container by \"persist\"" },
        { REQUEST_KEY_DRY_RUN },
        { REQUEST_KEY_TIMEOUT },
};
REQUEST_KEY_TABLE(request_batch_keys, batch_rows);

static const struct key remove_rows[] = {
        { REQUEST_KEY_CONTAINER(0) },
        { "target", 1, 0, KEY_PATH, .take = request_take_target, .positional = 1,
          .help = "absolute path as the container sees it, together with container" },
        { "id", 1, 0, KEY_NAME, REQUEST_FIELD(id),
          .help = "id of the mount, from mount-list or the reply that made it; or give container and target" },
        { "force", 1, 0, KEY_BOOLEAN, REQUEST_FIELD(force),
          .help = "true: detach it also when it is in use or its server does not answer" },
        { REQUEST_KEY_DRY_RUN },
        { REQUEST_KEY_TIMEOUT },
};
REQUEST_KEY_TABLE(request_remove_keys, remove_rows);

static const struct key list_rows[] = { { REQUEST_KEY_CONTAINER(0) }, { REQUEST_KEY_TIMEOUT } };
REQUEST_KEY_TABLE(request_list_keys, list_rows);

/* The bit of a row in request.given. */
static uint64_t bit_of(const struct request *request, const struct key *row)
{
        return 1ULL << (row - request->keys->rows);
}

int request_key_take_as(struct request *request, const char *key, const char *name, const json_t *value,
                        struct error *error)
{
        const struct key *row = key_find(request->keys, 1, key);

        if (row == NULL)
                return key_unknown(name, error);
        request->given |= bit_of(request, row);
        return key_take(row, name, request, value, error);
}

bool request_key_is_for(const struct request *request, const char *key)
{
        return key_find(request->keys, 1, key) != NULL;
}

bool request_key_has(const struct request *request, const char *key, unsigned trait)
{
        const struct key *row = key_find(request->keys, 1, key);

        return row != NULL && (row->traits & trait) != 0;
}

int request_key_take(struct request *request, const char *key, const json_t *value, struct error *error)
{
        return request_key_take_as(request, key, key, value, error);
}

bool request_key_given(const struct request *request, const char *key)
{
        const struct key *row = key_find(request->keys, 1, key);

        return row != NULL && (request->given & bit_of(request, row)) != 0;
}

int request_keys_check(const struct request *request, struct error *error)
{
        for (size_t i = 0; i < request->keys->count; i++) {
                const struct key *row = &request->keys->rows[i];

                if (row->required != 0 && (request->given & bit_of(request, row)) == 0 &&
                    !(row->take == request_take_container && request->has_container)) /* a batch or a hook names it */
                        return json_value_refuse(error, row->name, "is missing");
        }
        return 0;
}
