/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/apply.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "inject/attributes.h"
#include "inject/look.h"
#include "inject/place.h"
#include "inject/removal.h"
#include "process/worker.h"

#define UNDO_TIMEOUT_MS 5000
#define UNDO_LAST_MS 50

/* The function of each step, of an injection or of a removal. */
static const struct {
        int (*inject)(struct injection *injection, struct error *error);
        int (*remove)(struct removal *removal, struct error *error);
} functions[] = {
        [STEP_PIN_CONTAINER] = { .inject = injection_pin_container },
        [STEP_CLAIM] = { .inject = injection_claim },
        [STEP_LOOK] = { .inject = look_at_target },
        [STEP_OPEN_SOURCE] = { .inject = injection_open_source },
        [STEP_OPEN_IN_CONTAINER] = { .inject = injection_open_source },
        [STEP_OPEN_LAYERS] = { .inject = injection_open_source },
        [STEP_FIND_DEVICE] = { .inject = injection_open_source },
        [STEP_CHECK_SERVER] = { .inject = injection_open_source },
        [STEP_MOUNT_EXPORT] = { .inject = injection_make_mount },
        [STEP_CLONE] = { .inject = injection_make_mount },
        [STEP_CREATE_SUPERBLOCK] = { .inject = injection_make_mount },
        [STEP_MAKE_NODE] = { .inject = injection_make_mount },
        [STEP_SET_ATTRIBUTES] = { .inject = attributes_set },
        [STEP_LOCK] = { .inject = attributes_lock },
        [STEP_LOOK_AGAIN] = { .inject = look_at_target },
        [STEP_RECORD] = { .inject = place_record },
        [STEP_MAKE_TARGET] = { .inject = place_make_target },
        [STEP_ALLOW_DEVICE] = { .inject = place_allow_device },
        [STEP_PLACE] = { .inject = place_mount },
        [STEP_CONFIRM] = { .inject = place_confirm },
        [STEP_FIND_RECORD] = { .remove = removal_find_record },
        [STEP_FORBID_DEVICE] = { .remove = removal_forbid_device },
        [STEP_UNPLACE] = { .remove = removal_unplace },
        [STEP_UNMAKE_TARGET] = { .remove = removal_unmake_target },
        [STEP_FORGET] = { .remove = removal_forget },
};

struct run {
        struct session session;
        const struct plan *plans;
        struct injection *injections; /* one per plan */
        size_t count;
        bool batched;
        struct removal removal;
        size_t current; /* the current plan */
        enum step step; /* the current step */
};

/*
 * Targets are sorted as they are written, but the container's symbolic links may lead elsewhere. EBUSY if this mount
 * would cover one that was placed before.
 */
static int check_order(const struct run *run, struct error *error)
{
        const struct injection *late = &run->injections[run->current];

        for (size_t i = 0; i < run->current; i++) {
                const struct injection *early = &run->injections[i];

                if (container_same_namespace(&early->container->mnt_ns, &late->container->mnt_ns) &&
                    text_lies_in(early->record.mount_point, late->record.mount_point))
                        return fail_because(error, EBUSY, "find target", late->request->target,
                                            "it would cover the target of mounts[%zu]; a symbolic link may lead there",
                                            early->request->index);
        }
        return 0;
}

/* Runs one phase of the current plan. */
static int run_phase(struct run *run, enum phase phase, struct error *error)
{
        const struct plan *plan = &run->plans[run->current];
        struct injection *injection = &run->injections[run->current];
        int r = 0;

        for (size_t i = 0; r == 0 && !injection->already && i < plan->count; i++) {
                if (step_phase(plan->steps[i]) != phase || (run->session.dry_run && !step_looks(plan->steps[i])))
                        continue;
                run->step = plan->steps[i];
                r = functions[run->step].inject(injection, error);
                if (r == 0 && run->step == STEP_LOOK_AGAIN && (!injection->already || injection->request->replace))
                        r = check_order(run, error);
        }
        if (r == 0 && run->batched && phase == PHASE_PLACE && !run->session.dry_run)
                r = session_restore_namespace(&run->session, error); /* the next plan looks paths up on the node */
        return r;
}

/*
 * Takes the locks of all targets at once, in order. In a batch, and where a source may have to be created, also those
 * of the containers' trees; else look_at_target() takes those when it needs them.
 */
static int take_locks(struct run *run, struct error *error)
{
        static uint64_t keys[REQUEST_ENTRIES_MAX * INJECTION_LOCKS_MAX];
        static uint64_t trees[2 * REQUEST_ENTRIES_MAX];
        size_t tree_count = 0;
        bool both = run->batched;
        size_t count = 0;
        int r;

        for (size_t i = 0; i < run->count; i++) {
                for (size_t j = 0; j < run->injections[i].lock_count; j++)
                        keys[count++] = run->injections[i].locks[j];
                trees[tree_count++] = mount_record_tree_key(&run->injections[i].container->mnt_ns);
                if (run->injections[i].request->mkdir_source) {
                        trees[tree_count++] = mount_record_tree_key(&run->injections[i].from->mnt_ns);
                        both = true;
                }
        }
        r = session_lock(&run->session, keys, count, error);
        return r < 0 || !both ? r : session_lock(&run->session, trees, tree_count, error);
}

static int run_injections(void *argument, struct error *error)
{
        struct run *run = argument;
        int r = run->batched ? session_save_namespace(&run->session, error) : 0;

        for (int phase = PHASE_LOOK; r == 0 && phase < PHASE_COUNT; phase++) {
                for (size_t i = 0; r == 0 && i < run->count; i++) {
                        run->current = i;
                        r = run_phase(run, (enum phase)phase, error);
                }
                if (r == 0 && phase == PHASE_LOOK)
                        r = take_locks(run, error);
        }
        return r;
}

static int run_undo(void *argument, struct error *error)
{
        return place_undo(argument, error);
}

static int run_removal(void *argument, struct error *error)
{
        struct run *run = argument;
        int r = 0;

        for (size_t i = 0; r == 0 && i < run->plans->count; i++) {
                if (run->plans->request->dry_run && !step_looks(run->plans->steps[i]))
                        continue;
                run->step = run->plans->steps[i];
                r = functions[run->step].remove(&run->removal, error);
                if (run->removal.already && run->step == STEP_FIND_RECORD)
                        break; /* no record: nothing to remove */
        }
        return r;
}

static int name_hanging_step(const struct run *run, int r, struct error *error)
{
        const struct request *request = run->plans[run->current].request;

        if (r == -ETIMEDOUT && strcmp(error->operation, "wait") == 0) /* the worker's own; a step's tells more */
                return fail_because(error, ETIMEDOUT, "wait", request->target, "no answer after %d s from the step: %s",
                                    request->timeout_seconds, step_text(run->step));
        return r;
}

static void add_undo_failure(const struct injection *injection, const struct error *undo, struct error *error)
{
        struct error first = *error;

        (void)snprintf(error->reason, sizeof error->reason,
                       "%.200s; undoing it failed: %s: %s (record %s lists what is left)", error_why(&first),
                       undo->operation, error_why(undo), injection->record.id);
}

/* Undoes all plans, the last first, each in its own worker, which begins in the node's namespaces. */
static void undo_all(struct run *run, struct error *error)
{
        int64_t until_ms = clock_now_ms() + UNDO_TIMEOUT_MS; /* for all; after that a short time for each */

        for (size_t i = run->count; i-- > 0;) {
                struct injection *injection = &run->injections[i];
                struct error undo = {};
                int64_t now_ms = clock_now_ms();

                if (injection->already || injection->container == NULL ||
                    !(injection->recorded || injection->placed || injection->kind->undo != NULL))
                        continue;
                /* report the first error, and with it what could not be undone */
                if (worker_run(run_undo, injection, until_ms > now_ms ? until_ms : now_ms + UNDO_LAST_MS, &undo) < 0)
                        add_undo_failure(injection, &undo, error);
        }
}

static int apply_injections(struct run *run, struct outcome *ret_outcomes, struct error *error)
{
        int64_t deadline_ms = clock_now_ms() + (int64_t)run->plans->request->timeout_seconds * 1000;
        int r = worker_run(run_injections, run, deadline_ms, error);

        r = name_hanging_step(run, r, error);
        if (r < 0 && !run->session.dry_run)
                undo_all(run, error);
        for (size_t i = 0; i < run->count; i++) {
                struct injection *injection = &run->injections[i];

                ret_outcomes[i] = (struct outcome){ .request = injection->request,
                                                    .already = injection->already,
                                                    .replaced = injection->replacing,
                                                    .atomic = injection->atomic,
                                                    .record = &injection->record };
                injection_release(injection);
        }
        session_release(&run->session);
        return r;
}

static int apply_removal(struct run *run, struct outcome *ret_outcome, struct error *error)
{
        int64_t deadline_ms = clock_now_ms() + (int64_t)run->plans->request->timeout_seconds * 1000;
        int r = worker_run(run_removal, run, deadline_ms, error);

        r = name_hanging_step(run, r, error);
        *ret_outcome = (struct outcome){ .request = run->plans->request,
                                         .already = run->removal.already,
                                         .record = &run->removal.record };
        removal_release(&run->removal);
        return r;
}

int plan_apply(const struct plan *plan, struct outcome *ret_outcome, struct error *error)
{
        /* static: large, and a process applies one plan */
        static struct run run;
        static struct injection injection;

        run.plans = plan;
        if (plan->request->kind == REQUEST_MOUNT_REMOVE) {
                removal_begin(&run.removal, plan->request);
                return apply_removal(&run, ret_outcome, error);
        }
        session_begin(&run.session, plan->request->dry_run, /* policy= */ NULL, /* created_root= */ NULL);
        injection_begin(&injection, &run.session, plan->request);
        run.injections = &injection;
        run.count = 1;
        return apply_injections(&run, ret_outcome, error);
}

int plan_apply_batch(const struct plan *plans, const struct batch *batch, struct outcome *ret_outcomes,
                     const struct request **ret_failed, struct error *error)
{
        static struct run run;
        int r;

        *ret_failed = NULL;
        run.injections = calloc(batch->request->entry_count,
                                sizeof *run.injections); /* never freed: the outcomes point to its records */
        if (run.injections == NULL)
                return fail(error, ENOMEM, "calloc", "mounts");
        run.plans = plans;
        run.count = batch->request->entry_count;
        run.batched = true;
        session_begin(&run.session, batch->request->dry_run, batch->policy, batch->created_root);
        for (size_t i = 0; i < run.count; i++)
                injection_begin(&run.injections[i], &run.session, plans[i].request);
        r = apply_injections(&run, ret_outcomes, error);
        if (r < 0)
                *ret_failed = plans[run.current].request;
        return r;
}
