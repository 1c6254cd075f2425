/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/step.h"

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

enum phase step_phase(enum step step)
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

bool step_looks(enum step step)
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

const char *step_text(enum step step)
{
        return words[step].text;
}

const char *step_undo(enum step step)
{
        return words[step].undo;
}
