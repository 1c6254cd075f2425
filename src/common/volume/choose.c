/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/choose.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "process/log.h"
#include "volume/kinds.h"
#include "volume/provisioned.h"

/* A misspelt key does not stop a volume; the log tells of it. */
static void tell_unknown(const struct volume_request *request)
{
        const char *key;
        const json_t *value;

        json_object_foreach (request->options, key, value)
                if (!text_starts(key, "kubernetes.io/") && volume_option_find(key) == NULL)
                        log_say("the option \"%.64s\" is unknown and was ignored", key);
}

/* A record of a volume that is neither attached nor mounted is kept for its unfinished filesystem. */
static bool is_only_unfinished(const struct volume_call *call)
{
        return call->record.device[0] == '\0' && call->record.staged.dir == NULL && call->record.published_count == 0;
}

int volume_choose_kind(struct volume_call *call, struct error *error)
{
        const struct volume_kind *of_driver = volume_kind_of_driver(call->driver);
        const struct volume_kind *of_record = call->recorded ? volume_kind_find(call->record.kind) : NULL;
        const struct volume_kind *kind;
        int r = volume_kind_requested(call->request, of_driver, &kind, error);

        if (r < 0)
                return r;
        if (kind == NULL)
                kind = of_record != NULL ? of_record : of_driver != NULL ? of_driver : volume_kind_guess(call->request);
        if (kind == NULL)
                return fail_because(error, EINVAL, "find kind", call->request->name,
                                    "the volume has no \"type\"; set one of " VOLUME_TYPE_LIST);
        if (of_record != NULL && of_record != kind && is_only_unfinished(call)) {
                of_record = NULL;
                call->record.source[0] = '\0';
                call->record.formatting[0] = '\0';
        }
        if (of_record != NULL && of_record != kind)
                return fail_because(error, EBUSY, "find kind", call->request->name,
                                    "a volume of this name is already here, of type %s", call->record.kind);
        call->kind = kind;
        if (call->request->verb == VERB_ATTACH || call->request->verb == VERB_MOUNT)
                tell_unknown(call->request);
        return 0;
}

void volume_choose_lost(struct volume_call *call)
{
        for (size_t i = 0; volume_kinds[i] != NULL; i++)
                if (volume_kinds[i]->tagged)
                        call->kind = volume_kinds[i];
}

int volume_choose_open(struct volume_call *call, struct error *error)
{
        int r;

        if ((r = volume_call_open(call, error)) < 0 || (r = volume_choose_kind(call, error)) < 0 ||
            (r = volume_kind_wrapper(call->request, call->kind, &call->wrapper, error)) < 0 ||
            (r = volume_call_load_policy(call, error)) < 0)
                return r;
        return provisioned_apply(call, error);
}
