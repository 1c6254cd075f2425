/* SPDX-License-Identifier: Apache-2.0 */
#include "reconcile/reconcile.h"

#include <errno.h>

#include "base/clock.h"
#include "process/worker.h"
#include "state/mount_record.h"
#include "state/uses.h"
#include "state/wish.h"

#define USE_MS 5000 /* for who uses one former volume */

struct injected {
        struct reconcile_round *round;
        struct state *state;
};

static int needs_device(const struct mount_record *other, const char *id, void *argument, struct error *error)
{
        const struct mount_record *removed = argument;

        (void)id;
        if (other == NULL)
                return mount_record_unread(error);
        return !other->removed && mount_record_guard_key(other) == mount_record_guard_key(removed) &&
               (other->raw_device == removed->raw_device || other->replaces_raw == removed->raw_device);
}

/* The container lives, and had the device open when its mount was removed: by now it may have closed it. */
static void free_device(struct reconcile *reconcile, struct state *state, const char *id, struct mount_record *record,
                        struct error *error)
{
        int r = mount_record_each_of(state, &record->mnt_ns, record->boot_id, /* except= */ NULL, needs_device, record,
                                     error);

        if (r == 0 && !reconcile->dry_run)
                r = mount_guard_release(record, error);
        if (r == 0 && !reconcile->dry_run)
                r = mount_record_remove(state, id, error);
        if (r < 0)
                reconcile_problem(reconcile, id, error);
        else if (r == 0)
                reconcile_did(reconcile, "detached a raw device that was removed from its container", id);
}

struct former_use {
        struct state *state;
        const struct mount_record *record;
        const struct container *container;
        bool used;
};

static int look_for_use(void *argument, struct error *error)
{
        struct former_use *use = argument;

        (void)error;
        use->used = mount_record_former_is_used(use->state, use->record, use->container);
        return 0;
}

/* A process of the container's can make the kernel's list of what it has mapped wait (before Linux 6.17): it is in use. */
static bool is_used(struct state *state, const struct mount_record *record, const struct container *container)
{
        struct former_use use = { .state = state, .record = record, .container = container };
        struct error ignored;

        return worker_run(look_for_use, &use, clock_now_ms() + USE_MS, &ignored) < 0 || use.used;
}

/* The container lives; it still used a volume when another one took its place, or its mount was removed. */
static void free_former(struct reconcile *reconcile, struct state *state, const struct mount_record *record,
                        const struct container *container, struct error *error)
{
        if (is_used(state, record, container))
                return;
        if (!reconcile->dry_run && mount_record_remove(state, record->id, error) < 0)
                reconcile_problem(reconcile, record->id, error);
        else
                reconcile_did(reconcile, "forgot a former mount of a volume in a container", record->id);
}

/* With the record's lock. */
static int reconcile_locked(const struct injected *injected, const char *id, struct error *error)
{
        cleanup_container struct container container = CONTAINER_NONE;
        static struct mount_record record;
        struct reconcile *reconcile = injected->round->reconcile;
        struct state *state = injected->state;
        int r;

        if ((r = mount_record_read(state, id, &record, error)) < 0)
                return r == -EXDEV ? r : 0;
        r = mount_record_reach(&record, injected->round->boot_id, &container, error);
        if (r == 0 && !record.removed && record.remap_key != 0 && !mount_record_remap_lives(state, record.remap_key)) {
                /* not removed: writing to it should fail rather than reach the directory below */
                error_because(error, ENOTCONN, "find remap-daemon", record.target,
                              "its remap-daemon has exited, and it fails in container pid %d; the same request "
                              "again puts another in its place",
                              (int)record.pid);
                reconcile_problem(reconcile, id, error);
        }
        if (r == 0 && mount_record_is_former(&record))
                free_former(reconcile, state, &record, &container, error);
        else if (r == 0 && record.removed)
                free_device(reconcile, state, id, &record, error);
        if (r != -ESRCH || mount_record_process_runs(&record, injected->round->boot_id))
                return 0;
        if (reconcile->dry_run && mount_guard_exists(&record)) {
                reconcile_did(reconcile,
                              "release the raw device of a container that is gone, if no process has it open", id);
                return 0;
        }
        if (!reconcile->dry_run && (r = mount_guard_release(&record, error)) != 0) {
                if (r > 0)
                        error_because(error, EBUSY, OPERATION_FIND_CONTAINER, record.origin,
                                      "the container is gone, but a process still has its raw device %s open",
                                      record.origin);
                reconcile_problem(reconcile, id, error);
                return 0;
        }
        if (!reconcile->dry_run && mount_record_remove(state, id, error) < 0)
                reconcile_problem(reconcile, id, error);
        else
                reconcile_did(reconcile, "removed the record of a mount in a container that is gone", id);
        return 0;
}

static int reconcile_record(const struct mount_record *seen, const char *id, void *argument, struct error *error)
{
        const struct injected *injected = argument;
        int r;

        if (seen == NULL || !state_try_lock(injected->state, mount_record_key(id)))
                return 0;
        r = reconcile_locked(injected, id, error);
        state_unlock(injected->state, mount_record_key(id)); /* no call waits for the other records */
        return r;
}

int reconcile_mounts(struct reconcile_round *round, struct error *error)
{
        cleanup_state struct state state = STATE_NONE;
        cleanup_state struct state wishes = STATE_NONE;
        struct injected injected = { .round = round, .state = &state };
        struct error ignored; /* most nodes have none */
        int r = mount_record_open(round->config.state_dir, /* create= */ false, &state, error);

        if (r == 0)
                r = mount_record_each(&state, reconcile_record, &injected, error);
        if (r == 0 && !round->reconcile->dry_run)
                mount_record_tidy(&state);
        if (!round->reconcile->dry_run &&
            wish_open(round->config.state_dir, /* create= */ false, &wishes, &ignored) == 0)
                wish_tidy(&wishes, /* key= */ NULL);
        return r == -EXDEV ? r : 0; /* else: those that can be read */
}
