/* SPDX-License-Identifier: Apache-2.0 */
/* reconcile_mappable.c - volumes of pods that turned out to have a user namespace (volume/mappable_exchange.h). */
#include "reconcile/reconcile.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "process/worker.h"
#include "provision/provision.h"
#include "volume/exec_helpers.h"
#include "volume/mappable_exchange.h"
#include "volume/pod_users.h"

#define ONE_SECONDS 20 /* of one directory, whose server may not answer */

static bool begun;    /* the helper process, and what id_mappable_try() needs */
static bool given_up; /* one did not come back, and may have given the helper an order that is not answered yet */

static bool is_due(const struct mount_dir *place)
{
        return place->waits_for_users && pod_users_are_mapped(place->dir);
}

static int look_for_due(struct volume_record *record, const char *file, void *argument, struct error *error)
{
        (void)file;
        (void)argument;
        (void)error;
        for (size_t i = 0; record != NULL && i < record->published_count; i++)
                if (is_due(&record->published[i]))
                        return 1;
        return 0;
}

/* What fails here fails again in the round, which says so. */
static bool any_is_due(void)
{
        cleanup_state struct state state = STATE_NONE;
        struct config config;
        struct error ignored;

        return config_load(&config, &ignored) == 0 &&
               state_open(config.state_dir, "volumes", /* create= */ false, &state, &ignored) == 0 &&
               volume_record_each(&state, /* set_aside= */ false, look_for_due, NULL, &ignored) > 0;
}

int reconcile_begin(int argc, char **argv, struct error *error)
{
        int r = provision_begin(argc, argv, error);

        if (r < 0 || !any_is_due())
                return r;
        begun = true;
        return volume_exec_helpers_begin_for(VOLUME_RUNS_REMAP, argc, argv, error);
}

struct exchange {
        struct volume_call *call;
        struct mount_dir *place;
        bool try_only;
};

static int exchange_in_worker(void *argument, struct error *error)
{
        const struct exchange *exchange = argument;
        struct mount_dir *place = exchange->place;
        int r = exchange->try_only ? 0 : volume_mappable_settle(exchange->call, place, error);

        if (r < 0 || place->replaces != 0 || !is_due(place))
                return r;
        return volume_mappable_exchange(exchange->call, place, exchange->try_only, error);
}

/* What will be the same at every try until the node starts again, or the pod: told once. */
static void stop_waiting(struct volume_call *call, struct mount_dir *place)
{
        struct error ignored;

        place->waits_for_users = false;
        (void)volume_call_save(call, FILE_ORDERED, &ignored);
}

static void exchange(struct reconcile_round *round, struct volume_call *call, struct mount_dir *place)
{
        const bool dry_run = round->reconcile->dry_run;
        struct exchange job = { .call = call, .place = place, .try_only = dry_run };
        struct error error = {};
        int r = worker_run(exchange_in_worker, &job, clock_now_ms() + (int64_t)ONE_SECONDS * 1000, &error);

        if (r == -ETIMEDOUT || r == -ECANCELED)
                given_up = true;
        if (r < 0)
                reconcile_problem(round->reconcile, place->dir, &error);
        if (r > 0)
                reconcile_did(round->reconcile, "exchanged a mount for one that its pod can id-map", place->dir);
        if (!dry_run && place->waits_for_users && place->replaces == 0 &&
            (r == 0 || r == -ENOSYS || r == -EOPNOTSUPP)) /* 0: it can be id-mapped itself */
                stop_waiting(call, place);
}

void reconcile_mappable(struct reconcile_round *round, struct volume_call *call)
{
        struct volume_record *record = &call->record;

        for (size_t i = 0; begun && !given_up && i < record->published_count; i++)
                if (is_due(&record->published[i]))
                        exchange(round, call, &record->published[i]);
}
