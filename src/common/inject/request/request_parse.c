/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/request/request.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_value.h"
#include "inject/request/request_batch.h"
#include "inject/request/request_keys.h"
#include "inject/request/source.h"

/* What is wanted in a container may be nothing, and is never wanted anew. */
static int finish_batch(struct request *request, struct error *error)
{
        int r;

        if (!request->wanted)
                return request_batch_finish(request, error);
        if (request->entry_count > 0)
                return json_value_refuse(error, "wanted", "cannot be combined with \"mounts\"");
        if (!request->has_container)
                return json_value_refuse(error, "container", "is missing");
        if (request_key_given(request, "persist"))
                return json_value_refuse(error, "persist", "cannot be combined with \"wanted\"");
        r = request_wanted_add_all(request, error);
        return r < 0 || request->entry_count == 0 ? r : request_batch_finish(request, error);
}

static int finish(struct request *request, struct error *error)
{
        if (request->kind == REQUEST_MOUNT_BATCH)
                return finish_batch(request, error);
        if (request->kind == REQUEST_MOUNT)
                return request_rules_apply(request, error);
        if (request->kind == REQUEST_MOUNT_REMOVE && request->id == NULL &&
            (!request->has_container || request->target[0] == '\0'))
                return json_value_refuse(error, "id",
                                         "is missing: give either \"id\", or \"container\" and \"target\"");
        if (request->kind == REQUEST_MOUNT_REMOVE && request->id != NULL &&
            (request->has_container || request->target[0] != '\0'))
                return json_value_refuse(error, "id", "cannot be combined with \"container\" and \"target\"");
        return 0;
}

static const struct key_table *keys_of(enum request_kind kind, const struct source_kind *const *sources)
{
        switch (kind) {
        case REQUEST_MOUNT_BATCH:
                return &request_batch_keys;
        case REQUEST_MOUNT_REMOVE:
                return &request_remove_keys;
        case REQUEST_MOUNT_LIST:
                return &request_list_keys;
        default:
                return sources[0]->keys;
        }
}

int request_parse(struct request *ret_request, enum request_kind kind, const struct source_kind *const *sources,
                  int argc, char **argv, struct error *error)
{
        json_t *json = NULL;
        const char *key;
        json_t *value;
        int r;

        request_init(ret_request, kind, keys_of(kind, sources));
        ret_request->source_kind = kind == REQUEST_MOUNT ? sources[0] : NULL;
        ret_request->sources = sources;
        if ((r = key_read_request(argc, argv, &json, error)) < 0)
                return r;
        ret_request->json = json;
        ret_request->said = json;
        json_object_foreach (json, key, value) {
                if (kind == REQUEST_MOUNT_BATCH && strcmp(key, "mounts") == 0)
                        r = request_batch_add(ret_request, key, value, error);
                else
                        r = request_key_take(ret_request, key, value, error);
                if (r < 0)
                        return r;
        }
        return finish(ret_request, error);
}

#define TIMEOUT_DEFAULT_S 30

void request_init(struct request *ret_request, enum request_kind kind, const struct key_table *keys)
{
        *ret_request = (struct request){ .kind = kind,
                                         .keys = keys,
                                         .mkdir = true,
                                         .timeout_seconds = TIMEOUT_DEFAULT_S,
                                         .uid = REQUEST_ID_NONE,
                                         .gid = REQUEST_ID_NONE };
}

void request_release(struct request *request)
{
        for (size_t i = 0; i < request->entry_count; i++)
                request_release(&request->entries[i]);
        free(request->entries);
        request->entries = NULL;
        request->entry_count = 0;
        json_decref(request->json);
        request->json = NULL;
        mount_options_release(&request->options);
        free(request->source_text);
        request->source_text = NULL;
}
