/* SPDX-License-Identifier: Apache-2.0 */
#include "controller.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "base/text.h"
#include "codes.h"
#include "share.h"

/* As protobuf-c itself finds fields: all maps have entries of a type of their own, with the same two fields. */
static const char *field_of(const void *entry, unsigned index)
{
        const ProtobufCMessage *message = entry;
        const char *text;

        (void)memcpy(&text, (const char *)message + message->descriptor->fields[index].offset, sizeof text);
        return text != NULL ? text : "";
}

void csi_map_entry(const void *entry, const char **ret_key, const char **ret_value)
{
        *ret_key = field_of(entry, 0);
        *ret_value = field_of(entry, 1);
}

const char *csi_map_find(size_t count, const void *const *entries, const char *key, bool any_case)
{
        for (size_t i = 0; i < count; i++) {
                const char *has = field_of(entries[i], 0);

                if (any_case ? strcasecmp(has, key) == 0 : strcmp(has, key) == 0)
                        return field_of(entries[i], 1);
        }
        return NULL;
}

const char *controller_parameter(size_t count, const void *const *entries, const char *key, bool any_case)
{
        const char *value = csi_map_find(count, entries, key, any_case);

        return value != NULL && value[0] != '\0' ? value : NULL;
}

char *csi_text(struct call *call, const char *text)
{
        size_t size = strlen(text) + 1;

        return memcpy(call_memory(call, size), text, size);
}

/* Keys of parameters that are keys of volume-create's request, and no parameters of the pool. */
static const char *const request_keys[] = { "pool", "profile", "reclaimPolicy", "fsType", NULL };

/* What the provisioner says of a claim; the rest that it says is not for pools. */
static const char *const claim_keys[] = { CSI_OF_KUBERNETES "pv/name", CSI_OF_KUBERNETES "pvc/name",
                                          CSI_OF_KUBERNETES "pvc/namespace", NULL };

/* csi-driver-nfs takes its keys in letters of any case. */
static const char *key_of_share(const char *key)
{
        static const char *const keys[] = {
                "server", "share", "subDir", "mountPermissions", "onDelete", "mountOptions"
        };

        for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
                if (strcasecmp(keys[i], key) == 0)
                        return keys[i];
        return key;
}

/* And the words of onDelete. */
static json_t *value_of_share(const char *key, const char *value)
{
        char word[16]; /* longer than each */

        if (strcasecmp(key, "onDelete") != 0 || !text_copy(word, sizeof word, value))
                return json_string(value);
        csi_share_lower(word);
        return json_string(word);
}

void controller_pool_parameters(size_t count, const void *const *entries, json_t *parameters)
{
        for (size_t i = 0; i < count; i++) {
                const char *key;
                const char *value;

                csi_map_entry(entries[i], &key, &value);
                if (value[0] != '\0' && !text_among(key, request_keys) &&
                    (!text_starts(key, CSI_OF_KUBERNETES) || text_among(key, claim_keys)))
                        (void)json_object_set_new(parameters, key_of_share(key), value_of_share(key, value));
        }
}

const char *csi_range_problem(const Csi__V1__CapacityRange *range)
{
        if (range == NULL)
                return NULL;
        if (range->required_bytes < 0 || range->limit_bytes < 0)
                return "a size is negative";
        if (range->limit_bytes != 0 && range->limit_bytes < range->required_bytes)
                return "the limit is less than what is required";
        return NULL;
}

void controller_run(struct call *call, const char *program, json_t *request, call_next *next)
{
        char *text = json_text_make(request);

        json_decref(request);
        if (text == NULL) /* no memory, or a text that is no UTF-8 */
                call_fail(call, GRPC_INVALID_ARGUMENT, "a text of the request is no UTF-8");
        else
                call_run(call, program, (const char *const[]){ "-", NULL }, text, next);
        free(text);
}

/* A program that was killed, or does not say why, may have done it, or in part: the same call again ends it. */
static enum grpc_code code_of(const struct outcome *outcome)
{
        if (outcome->status < 0 || outcome->error == 0)
                return GRPC_ABORTED;
        return outcome->error == ENODEV ? GRPC_FAILED_PRECONDITION /* its pool is missing, not the volume */
                                        : csi_code(outcome->error);
}

bool controller_failed(struct call *call, const struct outcome *outcome)
{
        if (outcome->status == 0 && strcmp(outcome->state, "Success") == 0)
                return false;
        call_fail(call, code_of(outcome), "%s", outcome->message);
        return true;
}
