/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/reconcile.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "process/log.h"
#include "process/worker.h"
#include "provision/provision.h"
#include "volume/reconcile_round.h"

#define RUN_SECONDS 600

static void tell_tidied(const char *name, const struct error *error, void *argument)
{
        struct reconcile_round *round = argument;

        if (error != NULL)
                reconcile_problem(round->reconcile, name, error);
        else
                reconcile_did(round->reconcile, "deleted a volume that was half made or half deleted", name);
}

static int run_round(void *argument, struct error *error)
{
        struct reconcile_round *round = argument;
        int r = proc_boot_id(round->boot_id);

        if (r < 0)
                return fail(error, -r, "read", "boot_id");
        if ((r = reconcile_volumes(round, error)) < 0)
                return r;
        reconcile_mounts(round);
        if ((r = reconcile_loops(round, error)) < 0)
                return r;
        return provision_tidy(&round->config, round->reconcile->dry_run, tell_tidied, round, error);
}

int reconcile_run(struct reconcile *reconcile, struct error *error)
{
        static struct reconcile_round round; /* static, for its size; the log borrows of it */
        int r = config_load(&round.config, error);

        round.reconcile = reconcile;
        log_begin("volume-reconcile", r == 0 ? round.config.log : "syslog");
        if (r < 0)
                return r;
        r = worker_run(run_round, &round, clock_now_ms() + (int64_t)RUN_SECONDS * 1000, error);
        provision_end();
        free(round.records);
        return r;
}
