/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/choose.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "pool/record.h"
#include "state/access.h"
#include "volume/kinds.h"
#include "volume/provisioned.h"
#include "volume/same.h"

/* A record of a volume that is neither attached nor mounted is kept for its unfinished filesystem. */
static bool is_only_unfinished(const struct volume_call *call)
{
        return call->record.device[0] == '\0' && call->record.staged.dir == NULL && call->record.published_count == 0;
}

/*
 * Such a record outlives its volume. What was made under the name since is on another disk, or is for no filesystem: what mkfs
 * left is not meant. A killed attach of a volume that is there leaves such a record, too, by whose source it is ended.
 */
static void forget_former(struct volume_call *call)
{
        cleanup_provision_record struct provision_record made = {};
        struct error ignored; /* who needs the record meets it again */
        bool elsewhere;

        if (!call->recorded || !is_only_unfinished(call) || !provisioned_is_by_name(call) ||
            provision_record_find(call->config.state_dir, call->request->name, &made, &ignored) < 0 ||
            !text_among(made.pool_type, call->kind->pool_types))
                return;
        elsewhere = !provisioned_is_own(call, &made);
        if (elsewhere || (access_is_block(made.target_type) && call->record.formatting[0] != '\0'))
                volume_call_forget_source(call);
        if (elsewhere)
                call->record.source[0] = '\0';
}

int volume_choose_kind(struct volume_call *call, struct error *error)
{
        const struct volume_kind *of_record = call->recorded ? volume_kind_find(call->record.kind) : NULL;
        const struct volume_kind *kind;
        struct volume_signs signs;
        int r = volume_kind_read(call->request, volume_kind_of_driver(call->driver), &signs, error);

        if (r < 0)
                return r;
        signs.of_record = call->recorded ? call->record.kind : NULL;
        signs.state_dir = call->config.state_dir;
        kind = volume_kind_choose(&signs);
        if (kind == NULL)
                return fail_because(error, EINVAL, "find kind", call->request->name,
                                    "the volume has no \"type\"; set one of " VOLUME_TYPE_LIST);
        if (of_record != NULL && of_record != kind && is_only_unfinished(call)) {
                of_record = NULL;
                volume_call_forget_source(call);
                call->record.source[0] = '\0';
        }
        if (of_record != NULL && of_record != kind)
                return fail_because(error, EBUSY, "find kind", call->request->name,
                                    "a volume of this name is already here, of type %s", call->record.kind);
        call->kind = kind;
        forget_former(call);
        return volume_kind_check_options(call->request, kind, error);
}

int volume_choose_growing(const struct volume_call *call, struct error *error)
{
        return call->kind->grow != NULL ? 0
                                        : fail_because(error, EOPNOTSUPP, "grow volume", call->request->name,
                                                       "volumes of type %s cannot grow%s", call->kind->word,
                                                       call->kind->owned ? "" : ": a directory has no size");
}

void volume_choose_lost(struct volume_call *call)
{
        call->kind = volume_kind_tagged();
}

int volume_choose_open(struct volume_call *call, struct error *error)
{
        int r;

        if ((r = volume_call_open(call, error)) < 0 || (r = volume_check_csi(call, error)) < 0 ||
            (r = volume_choose_kind(call, error)) < 0 || (r = volume_call_load_policy(call, error)) < 0 ||
            (r = volume_check_same(call, error)) < 0)
                return r;
        if ((r = profiled_ensure(call, error)) < 0 || (r = provisioned_apply(call, error)) < 0 ||
            (r = volume_kind_wrapper(call->request, call->kind, &call->wrapper, error)) < 0)
                return r;
        return volume_access_apply(call, error);
}
