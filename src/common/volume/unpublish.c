/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/unpublish.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "mount/on_node.h"
#include "process/log.h"
#include "volume/mount_dir.h"

int volume_take_off(struct volume_call *call, struct error *error)
{
        const char *dir = call->request->dir;
        struct mount_dir *place;
        bool lazy;
        int r;

        if ((r = volume_call_open_place(call, error)) < 0)
                return r;
        r = on_node_remove(dir, call->config.unmount_seconds, /* insist= */ true, &lazy, error);
        if (r < 0)
                return r;
        if (lazy) {
                log_say("%s was busy or did not answer, and was detached lazily", dir);
                (void)snprintf(call->answer.message, sizeof call->answer.message,
                               "%.300s was busy or did not answer within %u s, and was detached lazily", dir,
                               call->config.unmount_seconds);
        }
        if (call->ephemeral != NULL && (!call->recorded || strcmp(call->record.kind, "ephemeral") == 0) &&
            (r = call->ephemeral->unmake(call, dir, error)) < 0)
                return r; /* remembered still, for the next call */
        place = call->recorded ? volume_record_mount_dir(&call->record, dir) : NULL;
        if (place != NULL) {
                mount_dir_unmake(dir, place->made);
                volume_record_forget(&call->record, dir);
        } else if (!call->recorded || volume_kind_has_device(call->record.kind))
                return 0;
        r = mount_dir_save(call, error);
        if (r == -ENOSPC || r == -EDQUOT || r == -EROFS) {
                /* what had to be taken off is off; that the record says otherwise does no harm, and detach removes it
                 */
                log_say("the record cannot be written: %s", strerrordesc_np(-r));
                return 0;
        }
        return r;
}
