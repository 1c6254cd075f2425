/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/provisioned.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "state/access.h"
#include "state/use_index.h"
#include "volume/mount_dir.h"
#include "volume/used.h"

int volume_access_apply(struct volume_call *call, struct error *error)
{
        cleanup_provision_record struct provision_record made = {};
        struct volume_request *request = call->request;
        char *mode = call->record.access_mode;
        int r = call->kind->has_device || call->kind->open != NULL ? provisioned_find_meant(call, &made, error)
                                                                   : -ENOENT;

        if (r < 0 && r != -ENOENT)
                return r;
        if (!call->kind->has_device && call->kind->open == NULL)
                mode[0] = '\0'; /* volumes of this name are others' as well: each pod says how its own is used */
        if (r == 0 && !call->kind->has_device && made.access_mode[0] == '\0')
                r = -ENOENT; /* nothing attaches a directory: what its first pod asked for stays */
        if (r == 0)
                (void)text_copy(mode, sizeof call->record.access_mode, made.access_mode);
        if (request->access_mode != NULL && (r < 0 || (!access_reads_only(mode) && !access_is_single(mode))))
                (void)text_copy(mode, sizeof call->record.access_mode, request->access_mode);
        call->mode_is_new = r == 0 || request->access_mode != NULL;
        request->read_only = request->read_only || access_reads_only(mode) ||
                             (request->access_mode != NULL && access_reads_only(request->access_mode));
        return 0;
}

/* A volume of which the index has no key, as one of a server: its own record has its pods. */
static int check_record(const struct volume_call *call, struct error *error)
{
        for (size_t i = 0; i < call->record.published_count; i++) {
                const char *dir = call->record.published[i].dir;

                if (strcmp(dir, call->request->dir) != 0 && mount_dir_has(call, &call->record.published[i]))
                        return fail_because(error, EBUSY, "check access mode", call->request->dir,
                                            "the volume is for one pod (%s), and is mounted on %s",
                                            call->record.access_mode, dir);
        }
        return 0;
}

int volume_access_check(struct volume_call *call, struct error *error)
{
        char keys[USE_KEYS_SIZE];
        int r = access_is_single(call->record.access_mode) ? volume_used_keys(call, 0, keys, error) : 1;

        if (r == 0 && keys[0] == '\0')
                return check_record(call, error);
        return r != 0 ? (r < 0 ? r : 0)
                      : access_check_pod(call->config.state_dir, call->record.access_mode, keys, call->record.file,
                                         call->request->dir, error);
}
