/* SPDX-License-Identifier: Apache-2.0 */
#include "plan.h"

#include <assert.h>

static const struct {
        const char *text;
        const char *undo;
} words[] = {
        [STEP_PIN_CONTAINER] = { "pin the container's first process, its namespaces and its root", "" },
        [STEP_CLAIM] = { "wait for other calls for the same target; read what an earlier one recorded", "" },
        [STEP_LOOK] = { "find the target beneath the container's root; see whether it is mounted already", "" },
        [STEP_OPEN_SOURCE] = { "open the source on the node, once", "" },
        [STEP_FIND_DEVICE] = { "find the block device and the type of its filesystem", "" },
        [STEP_CLONE] = { "clone the source as a detached mount", "drop it" },
        [STEP_CREATE_SUPERBLOCK] = { "mount the filesystem, detached", "drop it" },
        [STEP_DRESS] = { "set attributes, propagation and the id mapping", "" },
        [STEP_LOCK] = { "lock attributes against the container's root: all that were asked for to be, else nosuid and "
                        "nodev",
                        "drop it" },
        [STEP_RECORD] = { "record the intent", "remove the record" },
        [STEP_MAKE_TARGET] = { "make the mount point, owned by the container's root", "remove what was made" },
        [STEP_PLACE] = { "enter the container's mount namespace and place the mount", "take it back" },
        [STEP_CONFIRM] = { "look again from the container's side", "" },
        [STEP_FIND_RECORD] = { "find the record and pin the container it names", "" },
        [STEP_UNPLACE] = { "unmount what flexgraft put there, and nothing else", "" },
        [STEP_UNMAKE_TARGET] = { "remove the directories that flexgraft made for it", "" },
        [STEP_FORGET] = { "remove the record", "" },
};

static void add(struct plan *plan, enum step step)
{
        assert(plan->count < sizeof plan->steps / sizeof plan->steps[0]);
        plan->steps[plan->count++] = step;
}

static void plan_removal(struct plan *plan)
{
        add(plan, STEP_FIND_RECORD);
        add(plan, STEP_UNPLACE);
        add(plan, STEP_UNMAKE_TARGET);
        add(plan, STEP_FORGET);
}

/* What can be refused is refused before anything is made; what is seen by others comes last. */
static void plan_injection(struct plan *plan, const struct request *request)
{
        add(plan, STEP_PIN_CONTAINER);
        add(plan, STEP_CLAIM);
        add(plan, request->kind == REQUEST_MOUNT_BLOCK ? STEP_FIND_DEVICE : STEP_OPEN_SOURCE);
        add(plan, STEP_LOOK);
        add(plan, request->kind == REQUEST_MOUNT_BLOCK ? STEP_CREATE_SUPERBLOCK : STEP_CLONE);
        add(plan, STEP_DRESS);
        /* what is on a disk may be the container's own work, device files included: nodev has to hold */
        if (request->locked || request->kind == REQUEST_MOUNT_BLOCK)
                add(plan, STEP_LOCK);
        add(plan, STEP_RECORD);
        if (request->mkdir)
                add(plan, STEP_MAKE_TARGET);
        add(plan, STEP_PLACE);
        add(plan, STEP_CONFIRM);
}

void plan_make(struct plan *ret_plan, const struct request *request)
{
        *ret_plan = (struct plan){ .request = request };
        if (request->kind == REQUEST_MOUNT_REMOVE)
                plan_removal(ret_plan);
        else
                plan_injection(ret_plan, request);
}

bool plan_step_looks(enum step step)
{
        switch (step) {
        case STEP_PIN_CONTAINER:
        case STEP_CLAIM:
        case STEP_LOOK:
        case STEP_OPEN_SOURCE:
        case STEP_FIND_DEVICE:
        case STEP_FIND_RECORD:
                return true;
        default:
                return false;
        }
}

const char *plan_step_text(enum step step)
{
        return words[step].text;
}

const char *plan_step_undo(enum step step)
{
        return words[step].undo;
}
