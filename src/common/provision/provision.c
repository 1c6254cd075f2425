/* SPDX-License-Identifier: Apache-2.0 */
#include "provision/provision.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/json.h"
#include "process/log.h"
#include "process/worker.h"
#include "provision/idempotency.h"
#include "provision/job.h"
#include "provision/pool_kind.h"
#include "provision/profile.h"
#include "provision/record.h"
#include "state/config.h"
#include "state/state_dir.h"
#include "state/volume_record.h"

#define ERASE_SECONDS (24 * 3600U)

/* One call at a time per operation id, whichever volume it is for. */
static int lock_operation(struct job *job, const char *id, struct error *error)
{
        uint64_t key = hash_bytes(HASH_SEED, "operation/", strlen("operation/"));

        return state_lock(&job->state, hash_bytes(key, id, strlen(id)), error);
}

static int change(struct job *job, struct error *error)
{
        const struct provision_request *request = job->request;
        int r = request->operation != NULL ? lock_operation(job, request->operation, error) : 0;

        if (r == 0 && request->operation != NULL)
                r = idempotency_recall(job->config.state_dir, request->operation, request->json, &job->reply, error);
        if (r < 0 || job->reply != NULL)
                return r;
        if ((r = state_lock(&job->state, volume_record_key(request->name), error)) < 0)
                return r;
        r = request->verb == PROVISION_CREATE ? create_volume(job, error) : delete_volume(job, error);
        if (r == 0 && request->operation != NULL)
                r = idempotency_remember(job->config.state_dir, request->operation, request->json, job->reply, error);
        return r;
}

static int run(void *argument, struct error *error)
{
        struct job *job = argument;
        bool changes = job->request->verb == PROVISION_CREATE || job->request->verb == PROVISION_DELETE;
        int r = provision_record_open(job->config.state_dir, changes, &job->state, error);

        if (r < 0 && (changes || r != -ENOENT))
                return r;
        if ((job->request->verb == PROVISION_CREATE || job->request->verb == PROVISION_CAPACITY) &&
            (r = profiles_load(job->config.state_dir, &job->profiles, error)) < 0)
                return r;
        return changes ? change(job, error) : list_pools(job, error);
}

void provision_end(void)
{
        for (size_t i = 0; pool_kinds[i] != NULL; i++)
                if (pool_kinds[i]->end != NULL)
                        pool_kinds[i]->end();
}

static int run_here(const struct config *config, const struct provision_request *request, struct error *error)
{
        static struct job job; /* static, for its size */
        int r;

        job = (struct job){ .request = request, .config = *config, .state = STATE_NONE };
        r = run(&job, error);
        job_release(&job);
        json_decref(job.reply);
        return r;
}

int provision_make(const struct config *config, const struct provision_request *request, struct error *error)
{
        return run_here(config, request, error);
}

int provision_unmake(const struct config *config, const char *name, struct error *error)
{
        const struct provision_request request = { .verb = PROVISION_DELETE, .name = name };

        return run_here(config, &request, error);
}

int provision_begin(int argc, char **argv, struct error *error)
{
        int r = 0;

        for (size_t i = 0; r == 0 && pool_kinds[i] != NULL; i++)
                if (pool_kinds[i]->begin != NULL)
                        r = pool_kinds[i]->begin(argc, argv, error);
        return r;
}

int provision_run(const struct provision_request *request, json_t **ret_reply, struct error *error)
{
        static const char *const subjects[] = { "volume-create", "volume-delete", "volume-list", "volume-capacity" };
        static struct job job; /* static, for its size */
        unsigned seconds;
        int r;

        job.request = request;
        job.state = (struct state)STATE_NONE;
        r = config_load(&job.config, error);
        log_begin(subjects[request->verb], r == 0 ? job.config.log : "syslog");
        if (r < 0)
                return r;
        /* overwriting a large volume takes long */
        seconds = request->verb == PROVISION_DELETE ? ERASE_SECONDS
                                                    : job.config.call_seconds + job.config.command_seconds;
        r = worker_run(run, &job, clock_now_ms() + (int64_t)seconds * 1000, error);
        provision_end();
        job_release(&job);
        *ret_reply = job.reply;
        return r;
}
