/* SPDX-License-Identifier: Apache-2.0 */
#include "provision/provision.h"

#include <errno.h>

#include "pool/pool_kind.h"
#include "pool/record.h"
#include "provision/call.h"
#include "provision/reply_object.h"

/* What the driver makes sparse may be more than there is room for, as when it is made (image.c). */
static bool may_exceed(const struct provision_call *call, const struct provision_record *record,
                       const struct provision_growth *growth)
{
        return record->driver[0] != '\0' && !growth->preallocate && call->pool.max_percent == 100;
}

static int check_limit(const struct provision_record *record, const struct pool_measure *measure,
                       const struct provision_growth *growth, struct error *error)
{
        uint64_t size_bytes = pool_measure_align(measure, growth->size_bytes);

        if (size_bytes < record->size_bytes)
                size_bytes = record->size_bytes;
        if (growth->limit_bytes == 0 || size_bytes <= growth->limit_bytes)
                return 0;
        return fail_because(error, ERANGE, "grow volume", record->name,
                            "pool \"%.128s\" would give it %llu bytes, and the limit is %llu", record->pool,
                            (unsigned long long)size_bytes, (unsigned long long)growth->limit_bytes);
}

/* With the lock of its name. Returns 1: there is room for it. */
static int check_growth(struct provision_call *call, struct provision_record *record,
                        const struct provision_growth *growth, struct error *error)
{
        struct pool_measure measure = {};
        struct pool_item item;
        int r;

        if (record->lifecycle != PROVISION_CREATED || pool_kind_is_torn(record))
                return fail_because(error, EBUSY, "grow volume", record->name,
                                    "its creation, restore or deletion has not finished; repeat that call first");
        if (record->snapshot_of[0] != '\0')
                return fail_because(error, EINVAL, "grow volume", record->name,
                                    "it is a snapshot; make a volume of it with volume-create and \"from\"");
        if (growth->asked && growth->size_bytes < record->size_bytes && growth->size_bytes != record->asked_bytes)
                return fail_because(error, EINVAL, "grow volume", record->name,
                                    "it has %llu bytes, and the request is for %llu: a volume never shrinks",
                                    (unsigned long long)record->size_bytes, (unsigned long long)growth->size_bytes);
        if ((r = provision_call_use_pool_of(call, record, error)) < 0 ||
            (r = provision_call_lock_pool(call, error)) < 0 ||
            (r = provision_call_look_again(call, record, &item, error)) < 0 ||
            (r = call->kind->measure(&call->config, &call->pool, record->parameters, &measure, error)) < 0 ||
            (r = check_limit(record, &measure, growth, error)) < 0)
                return r;
        if (call->kind->no_device && !item.limited) /* only the record knows */
                item.size_bytes = record->size_bytes;
        if (!may_exceed(call, record, growth) && growth->size_bytes > item.size_bytes &&
            growth->size_bytes - item.size_bytes > measure.available_bytes)
                return fail_because(error, ENOSPC, "grow volume", record->name,
                                    "pool \"%.128s\" has room for it to grow by %llu bytes, to %llu", record->pool,
                                    (unsigned long long)measure.available_bytes,
                                    (unsigned long long)(item.size_bytes + measure.available_bytes));
        return 1;
}

static int grow(struct provision_call *call, const char *name, const struct provision_growth *growth,
                provision_grow_function *function, void *argument, struct error *error)
{
        cleanup_provision_record struct provision_record record = {};
        uint64_t got_bytes;
        bool more;
        int r = provision_record_open(call->config.state_dir, /* create= */ false, &call->state, error);

        if (r == 0 && (r = provision_record_lock(&call->state, name, error)) == 0)
                r = provision_record_read(&call->state, name, &record, error);
        if (r == -ENOENT)
                return function(argument, &got_bytes, error);
        if (r < 0 || (r = check_growth(call, &record, growth, error)) < 0 ||
            (r = function(argument, &got_bytes, error)) < 0)
                return r;
        /* what it has already may be what its pool made of the size that was asked for */
        more = growth->asked && growth->size_bytes > record.size_bytes;
        if (got_bytes <= record.size_bytes && !more)
                return 0;
        if (more)
                record.asked_bytes = growth->size_bytes;
        if (got_bytes > record.size_bytes)
                record.size_bytes = got_bytes;
        return provision_record_write(&call->state, &record, FILE_DURABLE, error);
}

int provision_grow(const struct config *config, const char *name, const struct provision_growth *growth,
                   provision_grow_function *function, void *argument, struct error *error)
{
        static struct provision_call call;
        int r;

        call = (struct provision_call){ .config = *config, .state = STATE_NONE };
        r = grow(&call, name, growth, function, argument, error);
        provision_call_release(&call);
        return r;
}

int provision_fail_absent(const char *operation, const char *name, struct error *error)
{
        return fail_because(error, ENOENT, operation, name, "there is no volume of this name; volume-list shows them");
}

int provision_describe(const struct config *config, const char *name, json_t **ret_volume, struct error *error)
{
        static struct provision_call call;
        cleanup_provision_record struct provision_record record = {};
        struct pool_item item;
        int r;

        call = (struct provision_call){ .config = *config, .state = STATE_NONE };
        r = provision_record_find(config->state_dir, name, &record, error);
        if (r == -ENOENT)
                return provision_fail_absent("find volume", name, error);
        if (r == 0 && (r = provision_call_use_pool_of(&call, &record, error)) == 0 &&
            (r = provision_call_look_again(&call, &record, &item, error)) == 0)
                *ret_volume = provision_object_found(&call.pool, &record, &item);
        provision_call_release(&call);
        return r;
}
