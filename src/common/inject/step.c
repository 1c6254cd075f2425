/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/step.h"

#include "inject/request/source.h"

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
