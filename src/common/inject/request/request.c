/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/request/request.h"

#include <jansson.h>
#include <stdlib.h>

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
