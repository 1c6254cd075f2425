/* SPDX-License-Identifier: Apache-2.0 */
#include "reconcile/reconcile.h"

#include <limits.h>
#include <stdio.h>

#include "base/clock.h"
#include "pool/record.h"
#include "process/log.h"
#include "process/worker.h"
#include "provision/cdi.h"
#include "provision/provision.h"
#include "state/uses.h"
#include "state/volume_record.h"
#include "volume/tools.h"

#define RUN_SECONDS 600

static void tell_tidied(const char *name, const char *did, const struct error *error, void *argument)
{
        struct reconcile_round *round = argument;

        if (error != NULL)
                reconcile_problem(round->reconcile, name, error);
        else
                reconcile_did(round->reconcile, did, name);
}

/* A file that engines read: a process was killed after it changed a volume, or somebody else changed the file. */
static int agree_devices(struct reconcile_round *round, struct error *error)
{
        int r = cdi_agree(&round->config, error);

        if (r > 0)
                reconcile_did(round->reconcile, "wrote the file of container engines' devices", round->config.cdi_dir);
        if (r < 0)
                reconcile_problem(round->reconcile, round->config.cdi_dir, error);
        return 0;
}

struct thawing {
        struct reconcile_round *round;
        struct state *state; /* of the snapshots' records */
};

static int thaw(const struct provision_record *record, const char *stem, void *argument, struct error *error)
{
        const struct thawing *thawing = argument;
        struct reconcile_round *round = thawing->round;
        struct error failure = {};

        (void)stem;
        (void)error;
        if (record == NULL || record->lifecycle != PROVISION_CREATING || record->snapshot_of[0] == '\0' ||
            !state_try_lock(thawing->state, volume_record_key(record->name))) /* the call that takes it runs */
                return 0;
        if (volume_snapshot_thaw(&round->config, record->snapshot_of, &failure) < 0)
                reconcile_problem(round->reconcile, record->snapshot_of, &failure);
        state_unlock(thawing->state, volume_record_key(record->name));
        return 0;
}

/* Of volumes whose snapshots were begun and not ended: first, as what comes before their records in the next step may take long. */
static int thaw_all(struct reconcile_round *round, struct error *error)
{
        cleanup_state struct state state = STATE_NONE;
        struct thawing thawing = { .round = round, .state = &state };
        int r = round->reconcile->dry_run
                        ? -ENOENT
                        : provision_record_open(round->config.state_dir, /* create= */ false, &state, error);

        return r < 0 ? (r == -ENOENT ? 0 : r)
                     : provision_record_each(&state, /* set_aside= */ true, thaw, &thawing, error);
}

static int run_round(void *argument, struct error *error)
{
        struct reconcile_round *round = argument;
        int r = proc_boot_id(round->boot_id);

        if (r < 0)
                return fail(error, -r, "read", "boot_id");
        if (!round->reconcile->dry_run && (r = uses_repair(round->config.state_dir, error)) < 0)
                return r;
        if ((r = reconcile_mounts(round, error)) < 0 || (r = reconcile_volumes(round, error)) < 0)
                return r;
        reconcile_stages(round);
        if ((r = reconcile_loops(round, error)) < 0 || (r = thaw_all(round, error)) < 0)
                return r;
        r = provision_tidy(&round->config, round->reconcile->dry_run, volume_snapshot_thaw, tell_tidied, round, error);
        return r < 0 || round->reconcile->dry_run ? r : agree_devices(round, error);
}

int reconcile_run(struct reconcile *reconcile, struct error *error)
{
        static struct reconcile_round round; /* the log borrows of it */
        int r = config_load(&round.config, error);

        round.reconcile = reconcile;
        log_begin("volume-reconcile", r == 0 ? round.config.log : "syslog");
        if (r < 0)
                return r;
        r = worker_run(run_round, &round, clock_now_ms() + (int64_t)RUN_SECONDS * 1000, error);
        provision_end();
        return r; /* what the round has read goes with the process: a worker that was killed may have been reading */
}
