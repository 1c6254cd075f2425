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
        if (plan->request->releaser != NULL)
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

/* ---- the steps of a plan: the system calls of each, and how it is undone */

#define CLOSE "close it"

/* Those of STEP_OPEN and STEP_MAKE are in the rows of the kinds. */
static const struct {
        const char *text;
        const char *undo;
} words[] = {
        [STEP_PIN_CONTAINER] = { "open the container's process, namespaces and root directory", "" },
        [STEP_CLAIM] = { "lock the target and read its record", "" },
        [STEP_LOOK] = { "find the target beneath the container's root; check whether it is mounted already", "" },
        [STEP_SET_ATTRIBUTES] = { "set attributes, propagation and the id mapping", "" },
        [STEP_LOCK] = { "lock attributes against the container's root: with \"locked\" all, else nosuid and nodev",
                        CLOSE },
        [STEP_LOOK_AGAIN] = { "find the target again, among the mounts placed so far", "" },
        [STEP_WANT] = { "write down whether it is wanted whenever the container runs", "write down what was before" },
        [STEP_RECORD] = { "write the record", "remove the record" },
        [STEP_MAKE_TARGET] = { "create the mount point, owned by the container's root", "remove what was created" },
        [STEP_ALLOW_DEVICE] = { "allow the device in the container's control group", "forbid it again" },
        [STEP_PLACE] = { "enter the container's mount namespace and move the mount to the target", "unmount it" },
        [STEP_CONFIRM] = { "check the mount from inside the container", "" },
        [STEP_FIND_RECORD] = { "find the record; open the container's process, namespaces and root directory", "" },
        [STEP_FORBID_DEVICE] = { "forbid the raw device in the container's control group", "" },
        [STEP_UNWANT] = { "write down that it is not wanted any more", "write down what was before" },
        [STEP_UNPLACE] = { "unmount the mount of that record, and no other", "" },
        [STEP_UNMAKE_TARGET] = { "remove the directories that flexgraft created for it", "" },
        [STEP_LET_GO] = { "if the mount was the volume's last, unmount the volume on the node and detach it", "" },
        [STEP_FORGET] = { "remove the record", "" },
};

enum phase step_phase(enum step step, const struct source_kind *kind)
{
        switch (step) {
        case STEP_PIN_CONTAINER:
        case STEP_CLAIM:
                return PHASE_PIN;
        case STEP_OPEN: /* what is held by now is looked at before the mounts are locked */
                return kind->hold != NULL ? PHASE_LOOK : PHASE_PREPARE;
        case STEP_LOOK_AGAIN:
        case STEP_WANT:
        case STEP_RECORD:
        case STEP_MAKE_TARGET:
        case STEP_ALLOW_DEVICE:
        case STEP_PLACE:
        case STEP_CONFIRM:
                return PHASE_PLACE;
        default:
                return PHASE_PREPARE;
        }
}

bool step_looks(enum step step)
{
        switch (step) {
        case STEP_PIN_CONTAINER:
        case STEP_CLAIM:
        case STEP_LOOK:
        case STEP_OPEN:
        case STEP_FIND_RECORD:
                return true;
        default:
                return false;
        }
}

bool step_asks_container(enum step step, const struct source_kind *kind)
{
        switch (step) {
        case STEP_OPEN:
        case STEP_MAKE:
                return kind->of_container;
        case STEP_LOOK:
        case STEP_LOOK_AGAIN:
        case STEP_MAKE_TARGET:
        case STEP_PLACE:
        case STEP_CONFIRM:
        case STEP_UNPLACE:
        case STEP_UNMAKE_TARGET:
                return true;
        default:
                return false;
        }
}

/* kind NULL: of a removal, which has none of the two steps of a kind. */
const char *step_text(enum step step, const struct source_kind *kind)
{
        if (kind == NULL || (step != STEP_OPEN && step != STEP_MAKE))
                return words[step].text;
        return step == STEP_OPEN ? kind->open_text : kind->make_text;
}

const char *step_undo(enum step step, const struct source_kind *kind)
{
        if (kind == NULL || (step != STEP_OPEN && step != STEP_MAKE))
                return words[step].undo;
        return step == STEP_OPEN ? "" : kind->make_undo ?: CLOSE;
}
