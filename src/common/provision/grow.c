/* SPDX-License-Identifier: Apache-2.0 */
#include "provision/provision.h"

#include <errno.h>

#include "provision/job.h"
#include "provision/pool_kind.h"
#include "provision/record.h"
#include "state/volume_record.h"

/* With the lock of its name. Returns 1: there is room for it. */
static int check_growth(struct job *job, struct provision_record *record, uint64_t size_bytes, struct error *error)
{
        struct pool_measure measure = {};
        struct pool_item item;
        int r;

        if (record->stage != PROVISION_CREATED)
                return fail_because(error, EBUSY, "grow volume", record->name,
                                    "its creation or deletion has not finished; repeat that call first");
        if ((r = job_use_pool(job, record->pool, error)) < 0 || (r = job_lock_pool(job, error)) < 0 ||
            (r = job_look_again(job, record, &item, error)) < 0 ||
            (r = job->kind->measure(&job->config, &job->pool, record->parameters, &measure, error)) < 0)
                return r;
        if (size_bytes > item.size_bytes && size_bytes - item.size_bytes > measure.available_bytes)
                return fail_because(error, ENOSPC, "grow volume", record->name,
                                    "pool \"%.128s\" has room for it to grow by %llu bytes, to %llu", record->pool,
                                    (unsigned long long)measure.available_bytes,
                                    (unsigned long long)(item.size_bytes + measure.available_bytes));
        return 1;
}

static int grow(struct job *job, const char *name, uint64_t size_bytes, provision_grow_function *function,
                void *argument, struct error *error)
{
        cleanup_provision_record struct provision_record record = {};
        uint64_t got_bytes;
        int r = provision_record_open(job->config.state_dir, /* create= */ false, &job->state, error);

        if (r == 0 && (r = state_lock(&job->state, volume_record_key(name), error)) == 0)
                r = provision_record_read(&job->state, name, &record, error);
        if (r == 0)
                r = check_growth(job, &record, size_bytes, error);
        if (r == -ENOENT)
                return function(argument, &got_bytes, error);
        if (r < 0 || (r = function(argument, &got_bytes, error)) < 0)
                return r;
        if (got_bytes <= record.size_bytes)
                return 0;
        record.size_bytes = got_bytes;
        return provision_record_write(&job->state, &record, error);
}

int provision_grow(const struct config *config, const char *name, uint64_t size_bytes,
                   provision_grow_function *function, void *argument, struct error *error)
{
        static struct job job; /* static, for its size */
        int r;

        job = (struct job){ .config = *config, .state = STATE_NONE };
        r = grow(&job, name, size_bytes, function, argument, error);
        job_release(&job);
        return r;
}
