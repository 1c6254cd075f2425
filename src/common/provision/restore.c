/* SPDX-License-Identifier: Apache-2.0 */
/* restore.c - the content of a snapshot in its volume, also after a call was killed. */
#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "pool/pool_kind.h"
#include "pool/record.h"
#include "process/log.h"
#include "provision/call.h"

/* With its own blocks, the content needs room beside that which it replaces. */
int restore_check_room(const struct provision_call *call, const struct provision_record *volume,
                       const struct provision_record *snapshot, bool shares, struct error *error)
{
        struct pool_measure measure = {};
        uint64_t needed = snapshot->size_bytes;
        int r;

        if (call->kind->unrestore == NULL)
                return 0;
        r = call->kind->measure(&call->config, &call->pool, volume->parameters, &measure, error);

        if (shares)
                needed -= volume->size_bytes < needed ? volume->size_bytes : needed;
        if (r < 0 || needed <= measure.available_bytes)
                return r;
        return fail_because(error, ENOSPC, "restore snapshot", call->pool.name,
                            "pool \"%.128s\" has room for %llu bytes, and the content needs %llu", call->pool.name,
                            (unsigned long long)measure.available_bytes, (unsigned long long)needed);
}

/* The record names the snapshot first: what a killed call left is found by it. */
int restore_put_back(struct provision_call *call, struct provision_record *volume,
                     const struct provision_record *snapshot, bool shares, struct error *error)
{
        struct pool_item item = {};
        struct error ignored;
        bool torn = volume->restoring[0] != '\0'; /* by a call that was killed */
        const bool was_formatted = volume->formatted;
        const bool had_kata_image = volume->has_kata_image;
        const bool grew = volume->grows;
        const bool grows = snapshot->grows || snapshot->size_bytes < volume->size_bytes;
        int r;

        (void)text_copy(volume->restoring, sizeof volume->restoring, snapshot->name); /* as long */
        /* killed, it has the content of either */
        volume->formatted = was_formatted && snapshot->formatted;
        volume->has_kata_image = had_kata_image && snapshot->has_kata_image;
        volume->grows = grew || grows;
        if ((r = provision_record_write(&call->state, volume, FILE_DURABLE, error)) < 0)
                return r;
        if (!shares) /* it takes as long as copying does, and the locks of both names are enough */
                provision_call_unlock_pool(call);
        r = call->kind->restore(&call->config, &call->pool, volume->id, snapshot->id, shares, &torn, error);
        if (r == 0)
                r = provision_call_look_again(call, volume, &item, error);
        if (r < 0 && torn)
                return r; /* the next call ends it */
        volume->restoring[0] = '\0';
        if (r < 0) {
                volume->formatted = was_formatted;
                volume->has_kata_image = had_kata_image;
                volume->grows = grew;
                (void)provision_record_write(&call->state, volume, FILE_DURABLE, &ignored);
                return r;
        }
        (void)text_copy(volume->identity, sizeof volume->identity, item.identity); /* it may be another disk now */
        volume->formatted = snapshot->formatted;
        volume->has_kata_image = snapshot->has_kata_image;
        volume->grows = grows;
        if (volume->size_bytes < snapshot->size_bytes)
                volume->size_bytes = snapshot->size_bytes;
        if ((r = provision_record_write(&call->state, volume, FILE_DURABLE, error)) < 0)
                return r;
        log_say("volume %s has the content of %s", volume->name, snapshot->name);
        return 0;
}

/* Nothing has the volume's id where only its name was missing; what others made of that name since then is theirs. */
static int check_still_torn(const struct provision_call *call, const struct provision_record *volume,
                            struct error *error)
{
        struct pool_item item;
        int r = call->kind->look(&call->config, &call->pool, volume->id, &item, error);

        if (r < 0)
                return r == -ENOENT ? 0 : r;
        if (!provision_call_is_volume(volume, &item))
                return fail_because(error, EEXIST, "restore snapshot", volume->id,
                                    "something else has the name %s since the restore was interrupted; rename or "
                                    "remove that, and repeat the restore",
                                    volume->id);
        return owners_check_unused(call, &call->pool, volume->id, error);
}

/* What could not be undone is ended. */
static int end_restore(struct provision_call *call, struct provision_record *volume, struct error *error)
{
        cleanup_provision_record struct provision_record snapshot = {};
        struct pool_item item;
        int r = provision_record_read(&call->state, volume->restoring, &snapshot, error);

        if (r < 0)
                return r == -ENOENT ? fail_because(error, ENOENT, "find volume", volume->restoring,
                                                   "there is no snapshot \"%.200s\" any more, which the volume was "
                                                   "being restored to",
                                                   volume->restoring)
                                    : r;
        if ((r = provision_call_look_again(call, &snapshot, &item, error)) < 0 ||
            (r = check_still_torn(call, volume, error)) < 0)
                return r;
        return restore_put_back(call, volume, &snapshot, /* shares= */ true, error);
}

int restore_unrestore(struct provision_call *call, struct provision_record *record, struct error *error)
{
        int r;

        if ((r = provision_call_use_pool_of(call, record, error)) < 0 ||
            (r = provision_call_lock_pool(call, error)) < 0)
                return r;
        if (pool_kind_is_torn(record))
                return end_restore(call, record, error);
        if ((r = call->kind->unrestore(&call->config, &call->pool, record->id, error)) < 0)
                return r;
        record->restoring[0] = '\0';
        return provision_record_write(&call->state, record, FILE_DURABLE, error);
}
