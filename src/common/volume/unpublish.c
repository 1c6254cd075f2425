/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/volume.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "mount/on_node.h"
#include "process/log.h"
#include "volume/kinds.h"
#include "volume/mount_dir.h"
#include "volume/pod_device.h"

/* What was made for a directory alone, which no record has: the directory tells of which kind it is. */
static int unmake_unrecorded(const struct volume_call *call, const char *dir, struct error *error)
{
        int r = 0;

        for (size_t i = 0; r == 0 && volume_kinds[i] != NULL; i++)
                if (volume_kinds[i]->unmake != NULL)
                        r = volume_kinds[i]->unmake(call, dir, error);
        return r;
}

/*
 * What was made for a directory alone, without the lock: it is not the volume of other pods, though it has the name of
 * theirs, and none waits while it is overwritten. The record names the directory until then. Returns 1: a call has made
 * another for the directory meanwhile, which stays.
 */
static int unmake(struct volume_call *call, const char *dir, struct error *error)
{
        const struct volume_kind *kind = call->recorded ? volume_kind_find(call->record.kind) : NULL;
        int r;

        if (!call->recorded)
                return unmake_unrecorded(call, dir, error);
        if (kind == NULL || kind->unmake == NULL)
                return 0;
        state_release(&call->state);
        if ((r = kind->unmake(call, dir, error)) < 0)
                return r; /* still in the record, for the next call */
        volume_record_release(&call->record);
        call->recorded = false;
        if ((r = volume_call_open_dir(call, error)) < 0)
                return r;
        return kind->has_made(call->config.state_dir, dir);
}

/* For CSI, whose driver removes the directory, or the file, also where an earlier boot made it. kubelet does it for FlexVolume. */
static bool removes_dir(const struct volume_call *call)
{
        return call->request->verb == VERB_UNMOUNT && call->driver[0] == '\0';
}

int volume_unmount(struct volume_call *call, struct error *error)
{
        const char *dir = call->request->dir;
        struct mount_dir *place;
        bool lazy;
        int r;

        if ((r = volume_call_open_dir(call, error)) < 0)
                return r;
        r = on_node_remove(dir, call->config.unmount_seconds, /* insist= */ true, &lazy, error);
        if (r < 0)
                return r;
        call->was_unmounted = r == 0;
        if (lazy) {
                log_say("%s was busy or did not answer, and was detached lazily", dir);
                (void)snprintf(call->answer.message, sizeof call->answer.message,
                               "%.300s was busy or did not answer within %u s, and was detached lazily", dir,
                               call->config.unmount_seconds);
        }
        if (call->request->verb == VERB_UNMOUNT && (r = unmake(call, dir, error)) != 0)
                return r < 0 ? r : 0;
        if (removes_dir(call))
                mount_dir_unmake(dir, 1);
        place = call->recorded ? volume_record_mount_dir(&call->record, dir) : NULL;
        if (place != NULL && (r = pod_device_give_back(call, place, error)) < 0)
                return r;
        if (place != NULL) {
                mount_dir_unmake(dir, place->made);
                volume_record_forget(&call->record, dir);
        } else if (!call->recorded || volume_kind_has_device(call->record.kind))
                return 0;
        r = mount_dir_save(call, error);
        if (r == -ENOSPC || r == -EDQUOT || r == -EROFS) {
                /* it is unmounted; an outdated record does no harm, and detach removes it */
                log_say("the record cannot be written: %s", strerrordesc_np(-r));
                return 0;
        }
        return r;
}

int volume_unpublish(struct volume_call *call, struct error *error)
{
        return volume_unmount(call, error);
}

int volume_unwrap(struct volume_call *call, struct error *error)
{
        int r = 0;

        for (size_t i = 0; r == 0 && volume_kinds[i] != NULL; i++)
                if (volume_kinds[i]->unstage != NULL)
                        r = volume_kinds[i]->unstage(call, error);
        return r;
}

int volume_unstage(struct volume_call *call, struct error *error)
{
        int r = volume_unmount(call, error);

        return r < 0 ? r : volume_unwrap(call, error);
}
