/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/volume.h"

#include <errno.h>
#include <string.h>

#include "base/fd.h"
#include "volume/choose.h"
#include "volume/device_filesystem.h"
#include "volume/mount_dir.h"
#include "volume/named_stage.h"
#include "volume/provisioned.h"
#include "volume/same.h"
#include "volume/sighting.h"

static int stage_device(struct volume_call *call, unsigned made, struct error *error)
{
        enum file_durability durability;
        cleanup_close int mount_fd = device_filesystem_mount(call, &durability, error);

        return mount_fd < 0
                       ? mount_fd
                       : mount_dir_put(
                                 call,
                                 &(struct mount_dir_new){
                                         .mount_fd = mount_fd, .made = made, .staged = true, .durability = durability },
                                 error);
}

/* Only attached: mount places the device itself. */
static int stage_block(struct volume_call *call, struct error *error)
{
        int r;

        if (call->wrapper != NULL)
                return fail_because(error, EINVAL, "stage", call->request->name,
                                    "%s: such a volume is for a filesystem, not for a device", call->wrapper->flag);
        if ((r = call->kind->attach(call, error)) < 0)
                return r;
        if (mount_dir_is_staged(call))
                return fail_because(error, EBUSY, "stage", call->request->name,
                                    "the volume is mounted on %s; unmount it there first", call->record.staged.dir);
        /* as a device it is kubelet's from here on: a container that has it, too, does not detach it when it ends */
        if ((r = named_stage_unmake(call, error)) < 0)
                return r;
        sighting_forget(call); /* a pod is to have it */
        return 0;
}

int volume_stage(struct volume_call *call, struct error *error)
{
        int r = volume_choose_open(call, error);

        if (r < 0 || (!call->kind->has_device && !call->request->block))
                return r;
        if (!call->kind->has_device)
                return fail_because(error, EINVAL, "stage", call->request->name,
                                    "volumes of type %s have no device; use it as a filesystem", call->kind->word);
        if ((r = volume_claim_csi(call, error)) < 0 || (r = provisioned_hold(call, error)) < 0)
                return r;
        if (call->request->block)
                r = stage_block(call, error);
        else
                r = call->wrapper != NULL ? call->wrapper->stage(call, error) : volume_stage_attached(call, error);
        return r < 0 ? r : volume_claim_csi(call, error);
}

static int stage_attached(struct volume_call *call, struct error *error)
{
        const char *dir = call->request->dir;
        unsigned made;
        int r;

        if ((r = call->kind->attach(call, error)) < 0 || (r = mount_dir_look(call, dir, &made, error)) < 0)
                return r;
        if (r == MOUNT_DIR_TAKEN)
                return fail_because(error, EBUSY, "mount", dir, "something else is mounted on %s; unmount it first",
                                    dir);
        if (r == MOUNT_DIR_OURS && call->record.staged.dir != NULL && strcmp(call->record.staged.dir, dir) == 0) {
                sighting_forget(call); /* a pod is to have it */
                return 0;
        }
        if (r == MOUNT_DIR_OURS)
                return mount_dir_adopt(call, dir, /* staged= */ true, error);
        /* not on dir, so elsewhere */
        if (mount_dir_is_staged(call) && (r = named_stage_unstage(call, "mount", error)) < 0)
                return r;
        if (mount_dir_is_staged(call))
                return fail_because(error, EBUSY, "mount", dir,
                                    "the volume is already mounted on %s; unmount it there first",
                                    call->record.staged.dir);
        /* an earlier call was killed; the directories that it made are removed with the mount, too */
        if (call->record.staged.dir != NULL && strcmp(call->record.staged.dir, dir) == 0 &&
            call->record.staged.made > made)
                made = call->record.staged.made;
        return stage_device(call, made, error);
}

int volume_stage_attached(struct volume_call *call, struct error *error)
{
        const bool grows = !call->request->read_only && provisioned_grows(call); /* before its record is written */
        int r = stage_attached(call, error);

        if (r == 0 && grows && !call->record.read_only)
                device_filesystem_grow_copy(call, call->request->dir);
        return r;
}
