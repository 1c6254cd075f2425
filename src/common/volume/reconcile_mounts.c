/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/reconcile_round.h"

#include <dirent.h>
#include <errno.h>

#include "state/mount_record.h"

void reconcile_mounts(struct reconcile_round *round)
{
        cleanup_state struct state state = STATE_NONE;
        char id[MOUNT_RECORD_ID_MAX];
        struct error error = {};
        DIR *list;

        if (state_open(round->config.state_dir, "mounts", /* create= */ false, &state, &error) < 0)
                return;
        list = mount_record_list(&state, &error);
        while (list != NULL && mount_record_next(list, id)) {
                cleanup_container struct container container = CONTAINER_NONE;
                static struct mount_record record; /* static, for its size */
                int r;

                if (!state_try_lock(&state, mount_record_key(id)) || mount_record_read(&state, id, &record, &error) < 0)
                        continue;
                r = mount_record_reach(&record, round->boot_id, &container, &error);
                if (r == 0 && record.translator_key != 0 && !mount_record_remap_lives(&state, record.translator_key)) {
                        /* not removed: writing to it should fail rather than reach the directory below */
                        error_because(&error, ENOTCONN, "find translator", record.target,
                                      "its remap-daemon has exited, and it fails in container pid %d; the same request "
                                      "again puts another in its place",
                                      (int)record.pid);
                        reconcile_problem(round->reconcile, id, &error);
                }
                if (r != -ESRCH)
                        continue;
                reconcile_did(round->reconcile, "removed the record of a mount in a container that is gone", id);
                if (!round->reconcile->dry_run && mount_record_remove(&state, id, &error) < 0)
                        reconcile_problem(round->reconcile, id, &error);
        }
        if (list != NULL)
                (void)closedir(list);
}
