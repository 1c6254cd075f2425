/* SPDX-License-Identifier: Apache-2.0 */
#include "plan_apply.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "removal.h"
#include "worker.h"

#define UNDO_TIMEOUT_MS 5000

/* Every step and who takes it: of the two function columns, the one that fits the plan. */
static const struct {
        int (*inject)(struct injection *injection, struct error *error);
        int (*remove)(struct removal *removal, struct error *error);
} takers[] = {
        [STEP_PIN_CONTAINER] = { .inject = injection_pin_container },
        [STEP_CLAIM] = { .inject = injection_claim },
        [STEP_LOOK] = { .inject = injection_look },
        [STEP_OPEN_SOURCE] = { .inject = injection_open_source },
        [STEP_FIND_DEVICE] = { .inject = injection_open_source },
        [STEP_CLONE] = { .inject = injection_make_mount },
        [STEP_CREATE_SUPERBLOCK] = { .inject = injection_make_mount },
        [STEP_DRESS] = { .inject = injection_dress },
        [STEP_LOCK] = { .inject = injection_lock },
        [STEP_RECORD] = { .inject = injection_record },
        [STEP_MAKE_TARGET] = { .inject = injection_make_target },
        [STEP_PLACE] = { .inject = injection_place },
        [STEP_CONFIRM] = { .inject = injection_confirm },
        [STEP_FIND_RECORD] = { .remove = removal_find_record },
        [STEP_UNPLACE] = { .remove = removal_unplace },
        [STEP_UNMAKE_TARGET] = { .remove = removal_unmake_target },
        [STEP_FORGET] = { .remove = removal_forget },
};

struct run {
        const struct plan *plan;
        struct injection injection;
        struct removal removal;
        enum step step; /* the one under way */
};

static int run_injection(void *argument, struct error *error)
{
        struct run *run = argument;
        int r = 0;

        for (size_t i = 0; r == 0 && !run->injection.already && i < run->plan->count; i++) {
                if (run->plan->request->dry_run && !plan_step_looks(run->plan->steps[i]))
                        continue;
                run->step = run->plan->steps[i];
                r = takers[run->step].inject(&run->injection, error);
        }
        return r;
}

static int run_undo(void *argument, struct error *error)
{
        struct run *run = argument;

        return injection_undo(&run->injection, error);
}

static int run_removal(void *argument, struct error *error)
{
        struct run *run = argument;
        int r = 0;

        for (size_t i = 0; r == 0 && i < run->plan->count; i++) {
                if (run->plan->request->dry_run && !plan_step_looks(run->plan->steps[i]))
                        continue;
                run->step = run->plan->steps[i];
                r = takers[run->step].remove(&run->removal, error);
                if (run->removal.already && run->step == STEP_FIND_RECORD)
                        break; /* no record, nothing of ours */
        }
        return r;
}

static int name_hanging_step(const struct run *run, int r, struct error *error)
{
        if (r == -ETIMEDOUT)
                return fail_because(error, ETIMEDOUT, "wait", run->plan->request->target,
                                    "gave up after %d s, while it was to %s", run->plan->request->timeout_seconds,
                                    plan_step_text(run->step));
        return r;
}

static void add_undo_failure(const struct run *run, const struct error *undo, struct error *error)
{
        struct error first = *error;

        (void)snprintf(error->reason, sizeof error->reason,
                       "%.200s; and undoing it failed: %s: %s (record %s tells what is left)",
                       first.reason[0] != '\0' ? first.reason : strerrordesc_np(first.errnum), undo->operation,
                       strerrordesc_np(undo->errnum), run->injection.record.id);
}

static int apply_injection(struct run *run, int64_t deadline_ms, struct outcome *ret_outcome, struct error *error)
{
        int r = worker_run(run_injection, run, deadline_ms, error);

        r = name_hanging_step(run, r, error);
        if (r < 0 && (run->injection.recorded || run->injection.placed)) {
                struct error undo;

                /* the first error is the one to tell; what had to be left behind, with it */
                if (worker_run(run_undo, run, worker_now_ms() + UNDO_TIMEOUT_MS, &undo) < 0)
                        add_undo_failure(run, &undo, error);
        }
        *ret_outcome = (struct outcome){ .already = run->injection.already, .record = &run->injection.record };
        injection_release(&run->injection);
        return r;
}

static int apply_removal(struct run *run, int64_t deadline_ms, struct outcome *ret_outcome, struct error *error)
{
        int r = worker_run(run_removal, run, deadline_ms, error);

        r = name_hanging_step(run, r, error);
        *ret_outcome = (struct outcome){ .already = run->removal.already, .record = &run->removal.record };
        removal_release(&run->removal);
        return r;
}

int plan_apply(const struct plan *plan, const struct source_kind *kind, struct outcome *ret_outcome,
               struct error *error)
{
        /* static: its pages are touched only where they are used, and a process applies one plan */
        static struct run run;
        int64_t deadline_ms = worker_now_ms() + (int64_t)plan->request->timeout_seconds * 1000;

        run.plan = plan;
        injection_begin(&run.injection, plan->request, kind);
        removal_begin(&run.removal, plan->request);
        return plan->request->kind == REQUEST_MOUNT_REMOVE ? apply_removal(&run, deadline_ms, ret_outcome, error)
                                                           : apply_injection(&run, deadline_ms, ret_outcome, error);
}
