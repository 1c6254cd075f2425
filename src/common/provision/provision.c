/* SPDX-License-Identifier: Apache-2.0 */
#include "provision/provision.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"
#include "pool/pool_kind.h"
#include "pool/record.h"
#include "process/log.h"
#include "process/worker.h"
#include "provision/call.h"
#include "provision/cdi.h"
#include "provision/profile.h"
#include "state/config.h"
#include "state/state_dir.h"
#include "state/volume_record.h"

#define ERASE_SECONDS (24 * 3600U)

/* One call at a time per operation id, whichever volume it is for. */
static int lock_operation(struct provision_call *call, const char *id, struct error *error)
{
        uint64_t key = hash_text("operation/");

        return state_lock(&call->state, hash_bytes(key, id, strlen(id)), error);
}

/*
 * Who deletes what is done soon waits for no other call, which may overwrite the volume for hours: it has the lock of a
 * name that other pods' volumes have, too.
 */
static int lock_names(struct provision_call *call, struct error *error)
{
        const struct provision_request *request = call->request;

        if (request->from != NULL)
                return copy_lock(call, request->name, request->from, error);
        if (!request->soon)
                return provision_record_lock(&call->state, request->name, error);
        if (!state_try_lock(&call->state, volume_record_key(request->name)))
                return errno == EAGAIN || errno == EACCES ? fail_because(error, EINPROGRESS, "delete volume",
                                                                         request->name, "another call works on it")
                                                          : fail(error, errno, "lock", "state");
        provision_record_forget_read();
        return 0;
}

static int change(struct provision_call *call, struct error *error)
{
        const struct provision_request *request = call->request;
        int r = request->operation != NULL ? lock_operation(call, request->operation, error) : 0;

        if (r == 0 && request->operation != NULL)
                r = idempotency_recall(call->config.state_dir, request->operation, request->json, &call->reply, error);
        if (r < 0 || call->reply != NULL)
                return r;
        if ((r = lock_names(call, error)) < 0)
                return r;
        r = request->verb == PROVISION_CREATE ? create_volume(call, error) : delete_volume(call, error);
        cdi_settle(&call->config, &call->state, request->name);
        if (r == 0 && request->operation != NULL)
                r = idempotency_remember(call->config.state_dir, request->operation, request->json, call->reply, error);
        return r;
}

static int run(void *argument, struct error *error)
{
        struct provision_call *call = argument;
        bool changes = call->request->verb == PROVISION_CREATE || call->request->verb == PROVISION_DELETE;
        int r = provision_record_open(call->config.state_dir, changes, &call->state, error);

        if (r < 0 && (changes || r != -ENOENT))
                return r;
        if ((call->request->verb == PROVISION_CREATE || call->request->verb == PROVISION_CAPACITY) &&
            (r = profiles_load(call->config.state_dir, &call->profiles, error)) < 0)
                return r;
        r = changes ? change(call, error) : list_pools(call, error);
        if (r < 0 && call->request->profile != NULL)
                profiles_explain(&call->profiles, error);
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
        static struct provision_call call;
        int r;

        call = (struct provision_call){ .request = request, .config = *config, .state = STATE_NONE, .within = true };
        r = run(&call, error);
        if (ret_problem != NULL)
                (void)text_copy(ret_problem, PROFILES_PROBLEM_SIZE,
                                request->profile != NULL ? call.profiles.problem : "");
        provision_call_release(&call);
        json_decref(call.reply);
        for (size_t i = 0; pool_kinds[i] != NULL; i++)
                if (pool_kinds[i]->close != NULL)
                        pool_kinds[i]->close(); /* nobody calls provision_end() */
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
        static struct provision_call call;
        unsigned seconds;
        int r;

        call.request = request;
        call.state = (struct state)STATE_NONE;
        r = config_load(&call.config, error);
        log_begin(subjects[request->verb], r == 0 ? call.config.log : "syslog");
        if (r < 0)
                return r;
        /* overwriting a large volume takes long, and so does copying one, or finding out that it is blank */
        seconds = request->verb == PROVISION_DELETE || request->from != NULL || request->match
                          ? ERASE_SECONDS
                          : call.config.call_seconds + call.config.command_seconds;
        r = worker_run(run, &call, clock_now_ms() + (int64_t)seconds * 1000, error);
        provision_end();
        provision_call_release(&call);
        *ret_reply = call.reply;
        return r;
}
