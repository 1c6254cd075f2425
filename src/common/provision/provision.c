/* SPDX-License-Identifier: Apache-2.0 */
#include "provision/provision.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/reply.h"
#include "base/text.h"
#include "pool/pool_kind.h"
#include "pool/record.h"
#include "process/log.h"
#include "process/worker.h"
#include "provision/cdi.h"
#include "provision/idempotency.h"
#include "provision/job.h"
#include "provision/profile.h"
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
        if ((r = request->from != NULL ? copy_lock(job, request->name, request->from, error)
                                       : provision_record_lock(&job->state, request->name, error)) < 0)
                return r;
        r = request->verb == PROVISION_CREATE ? create_volume(job, error) : delete_volume(job, error);
        cdi_settle(&job->config, &job->state, request->name);
        if (r == 0 && request->profile != NULL && job->profiles.problem[0] != '\0')
                (void)json_object_set_new(job->reply, "profilesProblem", reply_printable(job->profiles.problem));
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
        r = changes ? change(job, error) : list_pools(job, error);
        if (r < 0 && job->request->profile != NULL)
                profiles_explain(&job->profiles, error);
        return r;
}

void provision_end(void)
{
        for (size_t i = 0; pool_kinds[i] != NULL; i++)
                if (pool_kinds[i]->end != NULL)
                        pool_kinds[i]->end();
}

/* ret_problem: of PROFILES_PROBLEM_SIZE bytes, or NULL. */
static int run_here(const struct config *config, const struct provision_request *request, char *ret_problem,
                    struct error *error)
{
        static struct job job; /* static, for its size */
        int r;

        job = (struct job){ .request = request, .config = *config, .state = STATE_NONE };
        r = run(&job, error);
        if (ret_problem != NULL)
                (void)text_copy(ret_problem, PROFILES_PROBLEM_SIZE,
                                request->profile != NULL ? job.profiles.problem : "");
        job_release(&job);
        json_decref(job.reply);
        return r;
}

int provision_make(const struct config *config, const struct provision_request *request,
                   char ret_problem[PROFILES_PROBLEM_SIZE], struct error *error)
{
        return run_here(config, request, ret_problem, error);
}

int provision_unmake(const struct config *config, const char *name, bool soon, struct error *error)
{
        const struct provision_request request = { .verb = PROVISION_DELETE, .name = name, .soon = soon };

        return run_here(config, &request, /* ret_problem= */ NULL, error);
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
        /* overwriting a large volume takes long, and so does copying one */
        seconds = request->verb == PROVISION_DELETE || request->from != NULL
                          ? ERASE_SECONDS
                          : job.config.call_seconds + job.config.command_seconds;
        r = worker_run(run, &job, clock_now_ms() + (int64_t)seconds * 1000, error);
        provision_end();
        job_release(&job);
        *ret_reply = job.reply;
        return r;
}
