/* SPDX-License-Identifier: Apache-2.0 */
#include "provision/provision.h"

#include <errno.h>
#include <string.h>

#include "provision/job.h"
#include "provision/pool_kind.h"
#include "provision/record.h"
#include "state/volume_record.h"

#define TIDY_ERASE_MAX_BYTES ((uint64_t)16 << 30) /* more is not overwritten while a node boots */

struct tidying {
        struct job *job;
        bool dry_run;
        provision_tell *tell;
        void *argument;
};

/* With the lock of its name. Returns 1: deleted, or would be. */
static int tidy(const struct tidying *tidying, const char *name, struct error *error)
{
        cleanup_provision_record struct provision_record record = {};
        struct job *job = tidying->job;
        int r = provision_record_read(&job->state, name, &record, error);

        if (r < 0 || record.stage == PROVISION_CREATED)
                return r == -ENOENT ? 0 : r;
        if (tidying->dry_run)
                return 1;
        if ((r = job_use_pool(job, record.pool, error)) < 0)
                return r;
        if (record.stage == PROVISION_DELETING && !record.keeps_content && job->kind->erase != NULL &&
            strcmp(record.reclaim_policy, "retain") != 0 && record.size_bytes > TIDY_ERASE_MAX_BYTES)
                return fail_because(error, EBUSY, "delete volume", name,
                                    "%llu bytes are still to be overwritten, which volume-delete has the time for",
                                    (unsigned long long)record.size_bytes);
        if ((r = job_lock_pool(job, error)) < 0)
                return r;
        r = delete_take_away(job, &record, /* asked= */ NULL, error);
        return r < 0 ? r : 1;
}

static int tidy_one(const struct provision_record *record, const char *stem, void *argument, struct error *error)
{
        const struct tidying *tidying = argument;
        struct state *state = &tidying->job->state;
        struct error failure = {};
        int r;

        (void)stem;
        (void)error;
        if (record == NULL || record->stage == PROVISION_CREATED ||
            !state_try_lock(state, volume_record_key(record->name))) /* a running call works on it */
                return 0;
        r = tidy(tidying, record->name, &failure);
        if (r != 0)
                tidying->tell(record->name, r < 0 ? &failure : NULL, tidying->argument);
        state_unlock(state, volume_record_key(record->name));
        return 0;
}

int provision_tidy(const struct config *config, bool dry_run, provision_tell *tell, void *argument, struct error *error)
{
        static struct job job; /* static, for its size */
        const struct tidying tidying = { .job = &job, .dry_run = dry_run, .tell = tell, .argument = argument };
        int r;

        job = (struct job){ .config = *config, .state = STATE_NONE };
        r = provision_record_open(config->state_dir, /* create= */ false, &job.state, error);
        if (r == 0)
                r = provision_record_each(&job.state, tidy_one, (void *)&tidying, error);
        job_release(&job);
        return r == -ENOENT ? 0 : r;
}
