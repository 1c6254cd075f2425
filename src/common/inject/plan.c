/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/plan.h"

#include <assert.h>
#include <string.h>

#include "base/text.h"
#include "container/reference.h"

static const struct {
        const char *text;
        const char *undo;
} words[] = {
        [STEP_PIN_CONTAINER] = { "pin the container's first process, its namespaces and its root", "" },
        [STEP_CLAIM] = { "wait for other calls for the same target; read what an earlier one recorded", "" },
        [STEP_LOOK] = { "find the target beneath the container's root; see whether it is mounted already", "" },
        [STEP_OPEN_SOURCE] = { "open the source on the node, once", "" },
        [STEP_OPEN_IN_CONTAINER] = { "open the source beneath the other container's root, once", "" },
        [STEP_OPEN_LAYERS] = { "open the layers on the node, once", "" },
        [STEP_FIND_DEVICE] = { "find the block device and the type of its filesystem", "" },
        [STEP_CHECK_SERVER] = { "see that this server may be asked for", "" },
        [STEP_MOUNT_EXPORT] = { "find the server from the container's network namespace, mount its export, detached; "
                                "translate owners where the kernel cannot",
                                "drop it" },
        [STEP_CLONE] = { "clone the source as a detached mount", "drop it" },
        [STEP_CREATE_SUPERBLOCK] = { "mount the filesystem, detached", "drop it" },
        [STEP_MAKE_NODE] = { "make a device node of its own for it, detached", "drop it" },
        [STEP_DRESS] = { "set attributes, propagation and the id mapping", "" },
        [STEP_LOCK] = { "lock attributes against the container's root: all that were asked for to be, else nosuid and "
                        "nodev",
                        "drop it" },
        [STEP_LOOK_AGAIN] = { "look at the target again, with what was placed before", "" },
        [STEP_RECORD] = { "record the intent", "remove the record" },
        [STEP_MAKE_TARGET] = { "make the mount point, owned by the container's root", "remove what was made" },
        [STEP_ALLOW_DEVICE] = { "allow the device in the container's control group", "take that back" },
        [STEP_PLACE] = { "enter the container's mount namespace and place the mount", "take it back" },
        [STEP_CONFIRM] = { "look again from the container's side", "" },
        [STEP_FIND_RECORD] = { "find the record and pin the container it names", "" },
        [STEP_FORBID_DEVICE] = { "take back what was allowed of a raw device", "" },
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
        add(plan, STEP_FORBID_DEVICE);
        add(plan, STEP_UNMAKE_TARGET);
        add(plan, STEP_FORGET);
}

/* How each sort of mount finds its source, and makes of it a mount that nobody sees. */
static void plan_source(const struct request *request, enum step *ret_open, enum step *ret_make)
{
        switch (request->kind) {
        case REQUEST_MOUNT_BLOCK:
                *ret_open = STEP_FIND_DEVICE;
                *ret_make = request->raw ? STEP_MAKE_NODE : STEP_CREATE_SUPERBLOCK;
                return;
        case REQUEST_MOUNT_CONTAINER:
                *ret_open = STEP_OPEN_IN_CONTAINER;
                *ret_make = STEP_CLONE;
                return;
        case REQUEST_MOUNT_NFS:
                *ret_open = STEP_CHECK_SERVER;
                *ret_make = STEP_MOUNT_EXPORT;
                return;
        case REQUEST_MOUNT_TMPFS:
                *ret_open = *ret_make = STEP_CREATE_SUPERBLOCK; /* it has no source */
                return;
        case REQUEST_MOUNT_OVERLAY:
                *ret_open = STEP_OPEN_LAYERS;
                *ret_make = STEP_CREATE_SUPERBLOCK;
                return;
        default:
                *ret_open = STEP_OPEN_SOURCE;
                *ret_make = STEP_CLONE;
        }
}

/*
 * What can be refused is refused before anything is made; what is seen by others comes last. In a batch (batched) the
 * target is looked at again after others were placed, or then for the first time (within: it lies in another's).
 */
static void plan_injection(struct plan *plan, const struct request *request, bool batched, bool within)
{
        enum step open_step;
        enum step make_step;

        plan_source(request, &open_step, &make_step);
        add(plan, STEP_PIN_CONTAINER);
        add(plan, STEP_CLAIM);
        if (open_step != make_step)
                add(plan, open_step);
        if (!within)
                add(plan, STEP_LOOK);
        add(plan, make_step);
        add(plan, STEP_DRESS);
        /* what is on a disk, in an image or in another container may be a container's own work, device files
         * included: nodev has to hold */
        if (request->locked || request->held || request->kind == REQUEST_MOUNT_CONTAINER ||
            request->kind == REQUEST_MOUNT_OVERLAY || request->kind == REQUEST_MOUNT_NFS ||
            (request->kind == REQUEST_MOUNT_BLOCK && !request->raw))
                add(plan, STEP_LOCK);
        if (batched)
                add(plan, STEP_LOOK_AGAIN);
        add(plan, STEP_RECORD);
        if (request->mkdir)
                add(plan, STEP_MAKE_TARGET);
        if (request->raw)
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

enum phase plan_step_phase(enum step step)
{
        switch (step) {
        case STEP_PIN_CONTAINER:
        case STEP_CLAIM:
                return PHASE_KNOW;
        case STEP_LOOK_AGAIN:
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

bool plan_step_looks(enum step step)
{
        switch (step) {
        case STEP_PIN_CONTAINER:
        case STEP_CLAIM:
        case STEP_LOOK:
        case STEP_OPEN_SOURCE:
        case STEP_OPEN_IN_CONTAINER:
        case STEP_OPEN_LAYERS:
        case STEP_FIND_DEVICE:
        case STEP_CHECK_SERVER:
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
