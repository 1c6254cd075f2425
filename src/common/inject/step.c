/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/step.h"

static const struct {
        const char *text;
        const char *undo;
} words[] = {
        [STEP_PIN_CONTAINER] = { "open the container's process, namespaces and root directory", "" },
        [STEP_CLAIM] = { "lock the target and read its record", "" },
        [STEP_LOOK] = { "find the target beneath the container's root; check whether it is mounted already", "" },
        [STEP_OPEN_SOURCE] = { "open the source on the node", "" },
        [STEP_OPEN_IN_CONTAINER] = { "open the source beneath the other container's root", "" },
        [STEP_OPEN_LAYERS] = { "open the layers on the node", "" },
        [STEP_FIND_DEVICE] = { "find the block device and the type of its filesystem", "" },
        [STEP_FIND_VOLUME] = { "lock the volume and read its records", "" },
        [STEP_STAGE_VOLUME] = { "attach the volume, format it if it is blank, mount it on the node, clone that mount",
                                "close it; unmount and detach the volume unless it has another user" },
        [STEP_FIND_IMAGE] = { "open the image; find the partition and the type of its filesystem", "" },
        [STEP_CHECK_SERVER] = { "check that the policy allows the server", "" },
        [STEP_MOUNT_EXPORT] = { "find the server from the container's network namespace, mount its export, detached; "
                                "map owners with remap where the kernel cannot",
                                "close it" },
        [STEP_CLONE] = { "clone the source as a detached mount", "close it" },
        [STEP_CREATE_SUPERBLOCK] = { "mount the filesystem, detached", "close it" },
        [STEP_MAKE_NODE] = { "create a device node for it, detached", "close it" },
        [STEP_SET_ATTRIBUTES] = { "set attributes, propagation and the id mapping", "" },
        [STEP_LOCK] = { "lock attributes against the container's root: with \"locked\" all, else nosuid and nodev",
                        "close it" },
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

enum phase step_phase(enum step step)
{
        switch (step) {
        case STEP_PIN_CONTAINER:
        case STEP_CLAIM:
                return PHASE_PIN;
        case STEP_FIND_VOLUME:
                return PHASE_LOOK;
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
        case STEP_OPEN_SOURCE:
        case STEP_OPEN_IN_CONTAINER:
        case STEP_OPEN_LAYERS:
        case STEP_FIND_DEVICE:
        case STEP_FIND_VOLUME:
        case STEP_FIND_IMAGE:
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
