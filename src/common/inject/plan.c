/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/plan.h"

#include <assert.h>

#include "base/text.h"
#include "container/reference.h"
#include "inject/request/source.h"

static void add(struct plan *plan, enum step step)
{
        assert(plan->count < sizeof plan->steps / sizeof plan->steps[0]);
        plan->steps[plan->count++] = step;
}

static void plan_removal(struct plan *plan)
{
        add(plan, STEP_FIND_RECORD);
        add(plan, STEP_UNWANT);
        add(plan, STEP_UNPLACE);
        add(plan, STEP_FORBID_DEVICE);
        add(plan, STEP_UNMAKE_TARGET);
        if (plan->request->keeper != NULL)
                add(plan, STEP_LET_GO);
        add(plan, STEP_FORGET);
}

/*
 * Checks come before changes; visible changes come last. In a batch (batched) the target is looked up again after the
 * mounts before it are placed; a target below another entry's (within) is looked up only then.
 */
static void plan_injection(struct plan *plan, const struct request *request, bool batched, bool within)
{
        const struct source_kind *kind = request->source_kind;

        add(plan, STEP_PIN_CONTAINER);
        add(plan, STEP_CLAIM);
        if (kind->open != NULL)
                add(plan, STEP_OPEN);
        if (!within)
                add(plan, STEP_LOOK);
        add(plan, STEP_MAKE);
        add(plan, STEP_SET_ATTRIBUTES);
        if (request->locked || request->held || kind->foreign)
                add(plan, STEP_LOCK);
        if (batched)
                add(plan, STEP_LOOK_AGAIN);
        if (request->persist || request->unwanted)
                add(plan, STEP_WANT);
        add(plan, STEP_RECORD);
        if (request->mkdir)
                add(plan, STEP_MAKE_TARGET);
        if (kind->allow != NULL)
                add(plan, STEP_ALLOW_DEVICE);
        add(plan, STEP_PLACE);
        add(plan, STEP_CONFIRM);
}

void plan_make(struct plan *ret_plan, const struct request *request)
{
        *ret_plan = (struct plan){ .request = request };
        if (request->kind == REQUEST_MOUNT_REMOVE)
                plan_removal(ret_plan);
        else
                plan_injection(ret_plan, request, /* batched= */ false, /* within= */ false);
}

/* Whether a target lies within what another entry of the batch mounts in the same container. */
static bool lies_within_another(const struct request *batch, const struct request *entry)
{
        for (size_t i = 0; i < batch->entry_count; i++) {
                const struct request *other = &batch->entries[i];

                if (other != entry && text_lies_in(entry->target, other->target) &&
                    container_reference_same(&entry->container, &other->container))
                        return true;
        }
        return false;
}

void plan_make_batch(struct plan *ret_plans, const struct request *batch)
{
        for (size_t i = 0; i < batch->entry_count; i++) {
                const struct request *entry = &batch->entries[i];

                ret_plans[i] = (struct plan){ .request = entry };
                plan_injection(&ret_plans[i], entry, /* batched= */ true, lies_within_another(batch, entry));
        }
}
