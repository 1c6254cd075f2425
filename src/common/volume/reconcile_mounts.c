/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/reconcile_round.h"

#include <errno.h>

#include "state/mount_record.h"

struct injected {
        struct reconcile_round *round;
        struct state *state;
};

static int reconcile_record(const struct mount_record *seen, const char *id, void *argument, struct error *error)
{
        cleanup_container struct container container = CONTAINER_NONE;
        static struct mount_record record; /* static, for its size */
        const struct injected *injected = argument;
        struct reconcile *reconcile = injected->round->reconcile;
        struct state *state = injected->state;
        int r;

        if (seen == NULL || !state_try_lock(state, mount_record_key(id)) ||
            mount_record_read(state, id, &record, error) < 0)
                return 0;
        r = mount_record_reach(&record, injected->round->boot_id, &container, error);
        if (r == 0 && record.remap_key != 0 && !mount_record_remap_lives(state, record.remap_key)) {
                /* not removed: writing to it should fail rather than reach the directory below */
                error_because(error, ENOTCONN, "find remap-daemon", record.target,
                              "its remap-daemon has exited, and it fails in container pid %d; the same request "
                              "again puts another in its place",
                              (int)record.pid);
                reconcile_problem(reconcile, id, error);
        }
        if (r != -ESRCH)
                return 0;
        reconcile_did(reconcile, "removed the record of a mount in a container that is gone", id);
        if (!reconcile->dry_run && mount_record_remove(state, id, error) < 0)
                reconcile_problem(reconcile, id, error);
        return 0;
}

void reconcile_mounts(struct reconcile_round *round)
{
        cleanup_state struct state state = STATE_NONE;
        struct injected injected = { .round = round, .state = &state };
        struct error error = {};

        if (state_open(round->config.state_dir, "mounts", /* create= */ false, &state, &error) == 0)
                (void)mount_record_each(&state, reconcile_record, &injected, &error); /* those that can be read */
}
