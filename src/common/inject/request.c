/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/request.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define TIMEOUT_DEFAULT_S 30

/* What an entry of a batch calls the sorts of mounts. */
const char *const request_kind_words[] = { "bind", "block", "container-to-container", "tmpfs", "overlay", "nfs", NULL };

static const enum request_kind kinds[] = { REQUEST_MOUNT_BIND,  REQUEST_MOUNT_BLOCK,   REQUEST_MOUNT_CONTAINER,
                                           REQUEST_MOUNT_TMPFS, REQUEST_MOUNT_OVERLAY, REQUEST_MOUNT_NFS };

const char *request_kind_word(enum request_kind kind)
{
        for (size_t i = 0; request_kind_words[i] != NULL; i++)
                if (kinds[i] == kind)
                        return request_kind_words[i];
        return "";
}

enum request_kind request_kind_of(const char *word)
{
        for (size_t i = 0; request_kind_words[i] != NULL; i++)
                if (strcmp(request_kind_words[i], word) == 0)
                        return kinds[i];
        return 0;
}

void request_begin(struct request *ret_request, enum request_kind kind)
{
        *ret_request = (struct request){ .kind = kind,
                                         .mkdir = true,
                                         .timeout_seconds = TIMEOUT_DEFAULT_S,
                                         .uid = REQUEST_ID_NONE,
                                         .gid = REQUEST_ID_NONE };
}

void request_release(struct request *request)
{
        for (size_t i = 0; i < request->entry_count; i++)
                mount_options_release(&request->entries[i].options);
        free(request->entries);
        request->entries = NULL;
        request->entry_count = 0;
        json_decref(request->json);
        request->json = NULL;
        mount_options_release(&request->options);
}
