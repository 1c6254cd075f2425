/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/apply.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/interrupt.h"
#include "base/populate.h"
#include "base/progress.h"
#include "base/sort.h"
#include "base/text.h"
#include "inject/attributes.h"
#include "inject/removal.h"
#include "inject/replacement.h"
#include "inject/steps.h"
#include "process/worker.h"
#include "state/config.h"

#define UNDO_TIMEOUT_MS 5000
#define UNDO_LAST_MS 50
/* While it has a volume's lock, a call asks containers for this part of its time limit, and at least so many seconds. */
#define HELD_SHARE 4
#define HELD_LEAST_S 5
#define CLOSE_MS 2000
#define FORMER_MS 10000 /* at least so long volumes that were replaced are looked at */

/* The function of each step, of an injection or of a removal. */
static const struct {
        int (*inject)(struct injection *injection, struct error *error);
        int (*remove)(struct removal *removal, struct error *error);
} functions[] = {
        [STEP_PIN_CONTAINER] = { .inject = injection_pin_container },
        [STEP_CLAIM] = { .inject = injection_claim },
        [STEP_LOOK] = { .inject = look_at_target },
        [STEP_OPEN] = { .inject = injection_open_source },
        [STEP_MAKE] = { .inject = mounting_make },
        [STEP_SET_ATTRIBUTES] = { .inject = mounting_set_attributes },
        [STEP_LOCK] = { .inject = attributes_lock },
        [STEP_LOOK_AGAIN] = { .inject = look_at_target },
        [STEP_WANT] = { .inject = want_set },
        [STEP_RECORD] = { .inject = place_record },
        [STEP_MAKE_TARGET] = { .inject = place_make_target },
        [STEP_ALLOW_DEVICE] = { .inject = place_allow_device },
        [STEP_PLACE] = { .inject = place_mount },
        [STEP_CONFIRM] = { .inject = place_confirm },
        [STEP_FIND_RECORD] = { .remove = removal_find_record },
        [STEP_FORBID_DEVICE] = { .remove = removal_forbid_device },
        [STEP_UNWANT] = { .remove = want_take },
        [STEP_UNPLACE] = { .remove = removal_unplace },
        [STEP_UNMAKE_TARGET] = { .remove = removal_unmake_target },
        [STEP_LET_GO] = { .remove = removal_let_go },
        [STEP_FORGET] = { .remove = removal_forget },
};

struct run {
        const struct plan *plans;
        struct injection *injections; /* one per plan */
        size_t count;
        bool batched;
        bool holds;                             /* the lock of a volume */
        const struct volume_releaser *releaser; /* for volumes that are replaced; NULL: none are */
        size_t current;                         /* the current plan */
        const char *doing;                      /* the current step, in words */
        /* what is large comes last: the rest lies together */
        struct session session;
        struct removal removal;
        struct former former; /* of a removal; mount-list tells of those that stay */
        size_t order[REQUEST_ENTRIES_MAX];
};

static struct run the_run; /* a process carries out one plan, or one batch */

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
                        return fail_because(error, EBUSY, OPERATION_FIND_TARGET, late->request->target,
                                            "it would cover the target of mounts[%zu]; a symbolic link may lead there",
                                            early->request->index);
        }
        return 0;
}

/* A mount that was there already, once the entries before it are in their places. */
static int look_at_former(struct injection *injection, struct error *error)
{
        int r;

        injection->already = false;
        r = look_at_target(injection, error);
        if (r < 0 || injection->already)
                return r;
        return fail_because(error, EBUSY, OPERATION_FIND_TARGET, injection->request->target,
                            "it was mounted there already, and a mount of this batch has taken it away or covers it");
}

/* Runs one phase of the current plan. */
static int run_phase(struct run *run, enum phase phase, struct error *error)
{
        const struct plan *plan = &run->plans[run->current];
        struct injection *injection = &run->injections[run->current];
        int r = 0;

        for (size_t i = 0; r == 0 && i < plan->count; i++) {
                const enum step step = plan->steps[i];

                if (injection->already && step != STEP_WANT && !(run->batched && step == STEP_LOOK_AGAIN))
                        continue; /* what was done before may still have to be wanted */
                if (step_phase(step, injection->kind) != phase || (run->session.dry_run && !step_looks(step)))
                        continue;
                run->doing = step_text(step, injection->kind);
                if ((r = interrupt_check(OPERATION_WAIT, injection->request->target, error)) < 0)
                        return r;
                verbose_say(run->doing);
                (void)worker_waits_for_others(run->holds && step_asks_container(step, injection->kind));
                r = injection->already && step == STEP_LOOK_AGAIN ? look_at_former(injection, error)
                                                                  : functions[step].inject(injection, error);
                (void)worker_waits_for_others(false);
                if (r == 0 && step == STEP_LOOK_AGAIN && (!injection->already || injection->request->replace))
                        r = check_order(run, error);
        }
        if (r == 0 && run->batched && phase == PHASE_PLACE && !run->session.dry_run)
                r = session_restore_namespace(&run->session, error); /* the next plan looks paths up on the node */
        return r;
}

/*
 * Takes the locks of all targets at once, in order. In a batch, where a source may have to be created, and for a raw
 * device, which all mounts of it in the container share, also those of the containers' trees; else look_at_target() takes
 * those when it needs them.
 */
static int take_locks(struct run *run, struct error *error)
{
        uint64_t *keys = calloc(run->count + 1, (INJECTION_LOCKS_MAX + 2) * sizeof *keys); /* never of no bytes */
        uint64_t *trees = keys != NULL ? keys + run->count * INJECTION_LOCKS_MAX : NULL;
        size_t tree_count = 0;
        bool both = run->batched;
        size_t count = 0;
        int r;

        if (keys == NULL)
                return fail(error, ENOMEM, "lock", "state");
        for (size_t i = 0; i < run->count; i++) {
                for (size_t j = 0; j < run->injections[i].lock_count; j++)
                        keys[count++] = run->injections[i].locks[j];
                trees[tree_count++] = mount_record_tree_key(&run->injections[i].container->mnt_ns);
                both = both || run->injections[i].kind->allow != NULL;
                if (run->injections[i].request->mkdir_source) {
                        trees[tree_count++] = mount_record_tree_key(&run->injections[i].from->mnt_ns);
                        both = true;
                }
        }
        r = session_lock(&run->session, keys, count, error);
        if (r == 0 && both)
                r = session_lock(&run->session, trees, tree_count, error);
        free(keys);
        return r;
}

/* Of indexes. */
static int compare_sources(const void *one, const void *other, const void *context)
{
        const struct run *run = context;

        return strcmp(run->injections[*(const size_t *)one].request->source,
                      run->injections[*(const size_t *)other].request->source);
}

/* Sorted by their sources: calls that hold several things wait for each other in one order. */
static int hold_sources(struct run *run, struct error *error)
{
        size_t *order = run->order;
        size_t count = 0;
        int r = 0;

        for (size_t i = 0; i < run->count; i++)
                if (run->injections[i].kind->hold != NULL)
                        order[count++] = i;
        sort_few(order, count, sizeof *order, compare_sources, run);
        for (size_t i = 0; r == 0 && i < count; i++) {
                struct injection *injection = &run->injections[order[i]];
                const struct injection *before = i > 0 ? &run->injections[order[i - 1]] : NULL;
                bool alike = before != NULL && before->kind->hold == injection->kind->hold &&
                             strcmp(before->request->source, injection->request->source) == 0;

                run->current = order[i];
                run->doing = step_text(STEP_OPEN, injection->kind);
                r = injection->kind->hold(injection, alike ? before : NULL, error);
                run->holds = !run->session.dry_run;
        }
        return r;
}

/* Only when all is in its place: until then what was replaced may have to come back. */
static int settle_replaced(struct run *run, struct error *error)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < run->count; i++) {
                struct injection *injection = &run->injections[i];

                if (!injection->replacing || injection->already || run->session.dry_run ||
                    injection->record.replaces_raw == 0)
                        continue;
                run->current = i;
                if ((r = session_restore_namespace(&run->session, error)) == 0)
                        r = replacement_settle_raw(injection, &injection->record, error);
        }
        return r;
}

static int run_injections(void *argument, struct error *error)
{
        struct run *run = argument;
        int r = run->batched ? session_save_namespace(&run->session, error) : 0;

        for (int phase = PHASE_PIN; r == 0 && phase < PHASE_COUNT; phase++) {
                for (size_t i = 0; r == 0 && i < run->count; i++) {
                        run->current = i;
                        r = run_phase(run, (enum phase)phase, error);
                }
                if (r == 0 && phase == PHASE_PIN)
                        r = hold_sources(run, error);
                if (r == 0 && phase == PHASE_LOOK)
                        r = take_locks(run, error);
        }
        return r < 0 ? r : settle_replaced(run, error);
}

static int run_undo(void *argument, struct error *error)
{
        struct injection *injection = argument;
        int unwished = want_undo(injection, error);
        int r = injection->already ? 0 : place_undo(injection, error);

        return r < 0 ? r : unwished;
}

static int run_removal(void *argument, struct error *error)
{
        struct run *run = argument;
        int r = 0;

        for (size_t i = 0; r == 0 && i < run->plans->count; i++) {
                const enum step step = run->plans->steps[i];

                if (run->plans->request->dry_run && !step_looks(step))
                        continue;
                run->doing = step_text(step, /* kind= */ NULL);
                verbose_say(run->doing);
                (void)worker_waits_for_others(run->removal.holds && step_asks_container(step, /* kind= */ NULL));
                r = functions[step].remove(&run->removal, error);
                if (run->removal.already && step == STEP_UNWANT)
                        break; /* no record: nothing to remove */
        }
        return r;
}

static int run_give_back(void *argument, struct error *error)
{
        return want_give_back(argument, error);
}

/* So long other calls for a volume wait at most for a container that this one asks. */
static int held_seconds(const struct run *run)
{
        const int seconds = run->plans->request->timeout_seconds / HELD_SHARE;

        return seconds > HELD_LEAST_S ? seconds : HELD_LEAST_S;
}

static int name_hanging_step(const struct run *run, int r, struct error *error)
{
        const struct request *request = run->plans[run->current].request;

        if (r != -ETIMEDOUT ||
            strcmp(error->operation, OPERATION_WAIT) != 0) /* the worker's own; a step's tells more */
                return r;
        if (worker_others_were_late())
                return fail_because(error, ETIMEDOUT, OPERATION_WAIT, request->target,
                                    "no answer after %d s, as long as other calls may wait for the volume, from the "
                                    "step: %s",
                                    held_seconds(run), run->doing);
        return fail_because(error, ETIMEDOUT, OPERATION_WAIT, request->target, "no answer after %d s from the step: %s",
                            request->timeout_seconds, run->doing);
}

static void add_undo_failure(const struct injection *injection, const struct error *undo, struct error *error)
{
        struct error first = *error;

        (void)snprintf(error->reason, sizeof error->reason,
                       "%.200s; undoing it failed: %s: %s (record %s lists what is left)", error_why(&first),
                       undo->operation, error_why(undo), injection->record.id);
}

/* For all; after that a short time for each. */
static int64_t undo_ms(const struct run *run)
{
        int64_t ms = UNDO_TIMEOUT_MS;

        for (size_t i = 0; i < run->count; i++)
                if (run->injections[i].kind->undo_ms > ms)
                        ms = run->injections[i].kind->undo_ms;
        return ms;
}

/* Undoes all plans, the last first, each in its own worker, which begins in the node's namespaces. */
static void undo_all(struct run *run, struct error *error)
{
        int64_t until_ms = clock_now_ms() + undo_ms(run);

        interrupt_forget();
        if (run->holds)
                worker_allow_others(UNDO_TIMEOUT_MS);
        for (size_t i = run->count; i-- > 0;) {
                struct injection *injection = &run->injections[i];
                struct error undo = {};
                int64_t now_ms = clock_now_ms();

                if (injection->container == NULL ||
                    !(want_changed(injection) || (!injection->already && (injection->recorded || injection->placed ||
                                                                          injection->kind->undo != NULL))))
                        continue;
                /* report the first error, and with it what could not be undone */
                if (worker_run(run_undo, injection, until_ms > now_ms ? until_ms : now_ms + UNDO_LAST_MS, &undo) < 0)
                        add_undo_failure(injection, &undo, error);
        }
}

/* What became of the volumes that the mount replaced, or that a call which was killed had left. */
static const struct former *settle_former(const struct run *run, const struct injection *injection, int64_t deadline_ms)
{
        const struct request *request = injection->request;
        const struct volume_releaser *releaser = run->releaser;
        struct former *former;

        if (!request->replace || !injection->kind->switches || releaser == NULL || request->dry_run ||
            injection->record.mount_point[0] == '\0')
                return NULL;
        former = calloc(1, sizeof *former); /* never freed: the outcome points to it */
        if (former != NULL)
                former_settle(run->session.state_dir, &injection->record, releaser, /* has_gone= */ true, deadline_ms,
                              former);
        return former;
}

static int close_injections(void *argument, struct error *error)
{
        struct run *run = argument;

        (void)error;
        for (size_t i = 0; i < run->count; i++)
                injection_close(&run->injections[i]);
        return 0;
}

/* All locks were given back: no other call waits for a server with this one. */
static void close_all(struct run *run)
{
        bool may_wait = false;
        struct error ignored; /* what hangs in the kernel is left to it */

        for (size_t i = 0; i < run->count; i++)
                may_wait = may_wait || injection_close_may_wait(&run->injections[i]);
        if (may_wait)
                (void)worker_run(close_injections, run, clock_now_ms() + CLOSE_MS, &ignored);
        else
                (void)close_injections(run, &ignored);
}

static int apply_injections(struct run *run, struct outcome *ret_outcomes, struct error *error)
{
        int64_t deadline_ms = clock_now_ms() + (int64_t)run->plans->request->timeout_seconds * 1000;
        int64_t least_ms;
        int r;

        worker_allow_others((int64_t)held_seconds(run) * 1000);
        r = worker_run(run_injections, run, deadline_ms, error);
        r = name_hanging_step(run, r, error);
        if (r < 0 && !run->session.dry_run)
                undo_all(run, error);
        for (size_t i = 0; i < run->count; i++) {
                struct injection *injection = &run->injections[i];

                ret_outcomes[i] = (struct outcome){ .request = injection->request,
                                                    .kind = injection->kind,
                                                    .already = injection->already,
                                                    .replaced = injection->replacing,
                                                    .atomic = injection->atomic,
                                                    .replaced_volume = injection->replaced.volume,
                                                    .record = &injection->record };
                injection_let_go(injection);
        }
        session_release(&run->session);
        close_all(run);
        least_ms = clock_now_ms() + FORMER_MS; /* of all together */
        for (size_t i = 0; r == 0 && i < run->count; i++)
                ret_outcomes[i].former =
                        settle_former(run, &run->injections[i], deadline_ms > least_ms ? deadline_ms : least_ms);
        return r;
}

/* Only a volume replaces a volume: of another mount's target there is nothing to look for. */
static bool was_of_volume(const struct run *run)
{
        const struct mount_record *record = &run->removal.record;

        return run->releaser != NULL && !run->plans->request->dry_run && record->boot_id[0] != '\0' &&
               (record->id[0] == '\0' || record->volume[0] != '\0');
}

/* Volumes that were on the target before, if no process has files of them open any more. */
static void settle_removed(struct run *run, int64_t deadline_ms)
{
        struct error ignored;
        int64_t least_ms = clock_now_ms() + FORMER_MS;

        if (config_state_dir(run->session.state_dir, &ignored) == 0)
                former_settle(run->session.state_dir, &run->removal.record, run->releaser, /* has_gone= */ false,
                              deadline_ms > least_ms ? deadline_ms : least_ms, &run->former);
}

static int apply_removal(struct run *run, struct outcome *ret_outcome, struct error *error)
{
        int64_t deadline_ms = clock_now_ms() + (int64_t)run->plans->request->timeout_seconds * 1000;
        struct error ignored;
        int r;

        worker_allow_others((int64_t)held_seconds(run) * 1000);
        r = worker_run(run_removal, run, deadline_ms, error);
        r = name_hanging_step(run, r, error);
        if (r < 0 && run->removal.wish.begun)
                (void)worker_run(run_give_back, &run->removal, clock_now_ms() + UNDO_TIMEOUT_MS, &ignored);
        if (run->removal.already && run->removal.wanted_in[0] != '\0') { /* it was wanted, and not there */
                (void)text_copy(run->removal.record.id, sizeof run->removal.record.id, run->removal.wanted_id);
                (void)text_copy(run->removal.record.target, sizeof run->removal.record.target, run->removal.wanted_at);
        }
        *ret_outcome = (struct outcome){ .request = run->plans->request,
                                         .already = run->removal.already && run->removal.wish.before == NULL,
                                         .in_use = run->removal.in_use,
                                         .record = &run->removal.record };
        removal_release(&run->removal);
        if (r == 0 && was_of_volume(run))
                settle_removed(run, deadline_ms);
        return r;
}

int plan_apply(const struct plan *plan, struct outcome *ret_outcome, struct error *error)
{
        static struct injection injection;
        struct run *run = &the_run;

        run->plans = plan;
        run->releaser = plan->request->releaser;
        run->doing = step_text(plan->steps[0], /* kind= */ NULL); /* the worker may hang before that */
        if (plan->request->kind == REQUEST_MOUNT_REMOVE) {
                removal_init(&run->removal, plan->request);
                return apply_removal(run, ret_outcome, error);
        }
        session_init(&run->session, plan->request->dry_run, /* policy= */ NULL, /* created_root= */ NULL);
        populate(&injection, offsetof(struct injection, source)); /* the record is the last that each call fills */
        injection_init(&injection, &run->session, plan->request);
        run->injections = &injection;
        run->count = 1;
        return apply_injections(run, ret_outcome, error);
}

int plan_apply_batch(const struct plan *plans, const struct batch *batch, struct outcome *ret_outcomes,
                     const struct outcome **ret_failed, struct error *error)
{
        struct run *run = &the_run;
        int r;

        *ret_failed = NULL;
        run->injections = calloc(batch->request->entry_count,
                                 sizeof *run->injections); /* never freed: the outcomes point to its records */
        if (run->injections == NULL)
                return fail(error, ENOMEM, "calloc", "mounts");
        run->plans = plans;
        run->releaser = batch->request->releaser;
        run->doing = step_text(STEP_PIN_CONTAINER, /* kind= */ NULL);
        run->count = batch->request->entry_count;
        run->batched = true;
        session_init(&run->session, batch->request->dry_run, batch->policy, batch->created_root);
        for (size_t i = 0; i < run->count; i++)
                injection_init(&run->injections[i], &run->session, plans[i].request);
        r = apply_injections(run, ret_outcomes, error);
        if (r < 0)
                *ret_failed = &ret_outcomes[run->current];
        return r;
}
