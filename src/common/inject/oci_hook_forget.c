/* SPDX-License-Identifier: Apache-2.0 */
/* oci_hook_forget.c - at poststop: the records of a container that has ended, and its volumes by name. */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "container/identity.h"
#include "inject/former.h"
#include "inject/oci_hook.h"
#include "inject/raw_grant.h"
#include "process/proc.h"
#include "process/worker.h"
#include "state/config.h"
#include "state/mount_record.h"
#include "state/state_dir.h"
#include "state/uses.h"

#define DYING_MS 2000
#define LET_GO_MS 10000 /* to wait for a volume's lock, and to detach it; to write raw devices */

/* Whether the container of a record has ended; a runtime may run the hook while its process still exits. */
static bool has_ended(const struct mount_record *record, const char *boot_id, int64_t until_ms)
{
        struct error ignored;

        for (int attempt = 0; attempt < 2; attempt++) {
                cleanup_container struct container alive = CONTAINER_NONE;

                if (mount_record_reach(record, boot_id, &alive, &ignored) == -ESRCH)
                        return true;
                if (attempt == 0 && clock_now_ms() < until_ms)
                        container_wait_end(&alive, (int)(until_ms - clock_now_ms()));
        }
        return false;
}

struct forgetting {
        const struct oci_hook *hook;
        const struct volume_releaser *releaser;
        struct state *state;
        const char *boot_id;
        char wanted[WISH_KEY_SIZE];           /* of records of mounts whose request had another name of it; "" none */
        int64_t until_ms;                     /* for all records together; 0: what runs, runs */
        int64_t let_go_until_ms;              /* likewise, for their volumes and raw devices */
        const char *id;                       /* of the record that is looked at */
        char volume[MOUNT_RECORD_VOLUME_MAX]; /* by name, which it is of, and whose lock is held; "": none */
};

static bool is_of_ended(const struct forgetting *forgetting, const struct mount_record *record)
{
        return (strcmp(record->container_id, forgetting->hook->id) == 0 ||
                (record->wanted[0] != '\0' && strcmp(record->wanted, forgetting->wanted) == 0)) &&
               has_ended(record, forgetting->boot_id, forgetting->until_ms);
}

static int forget_locked(const struct forgetting *forgetting, struct error *error)
{
        static struct mount_record again;
        const char *id = forgetting->id;
        struct error ignored;

        if (mount_record_read(forgetting->state, id, &again, &ignored) < 0 ||
            !is_of_ended(forgetting, &again) /* again under the lock: the id may be in use again */ ||
            ((again.raw_source != 0 || again.replaces_raw_source != 0) &&
             raw_grant_release_all(forgetting->state, &again, &ignored) != 0) ||
            strcmp(again.volume, forgetting->volume) != 0 ||
            (again.volume[0] != '\0' && forgetting->releaser->let_go(id, &ignored) < 0))
                return 0;
        return mount_record_remove(forgetting->state, id, error);
}

/* One record's lock at a time: the volume of the next is locked before the next, and by another call before this one. */
static int forget_one(const struct forgetting *forgetting, struct error *error)
{
        int r;

        if (!state_try_lock(forgetting->state, mount_record_key(forgetting->id))) /* another call uses it */
                return 0;
        r = forget_locked(forgetting, error);
        state_unlock(forgetting->state, mount_record_key(forgetting->id));
        return r;
}

/* A volume's lock comes before those of mounts. */
static int forget_in_worker(void *argument, struct error *error)
{
        const struct forgetting *forgetting = argument;
        int r = forgetting->volume[0] == '\0' ? 0 : forgetting->releaser->hold(forgetting->volume, error);

        return r < 0 ? r : forget_one(forgetting, error);
}

/* Detaching a volume may hang, and so may writing what the page cache has of a raw device. */
static bool may_hang(const struct mount_record *record)
{
        return record->volume[0] != '\0' || record->raw_source != 0 || record->replaces_raw_source != 0;
}

/*
 * A record that cannot be read stays, and so does one whose volume cannot be detached, or whose raw device cannot be
 * written: volume-reconcile will.
 */
static int forget(const struct mount_record *record, const char *id, void *argument, struct error *error)
{
        struct forgetting *forgetting = argument;

        if (record == NULL || !is_of_ended(forgetting, record))
                return 0;
        forgetting->id = id;
        (void)text_copy(forgetting->volume, sizeof forgetting->volume, record->volume);
        if (!may_hang(record))
                return forget_one(forgetting, error);
        if (clock_now_ms() >= forgetting->let_go_until_ms)
                return 0;
        (void)worker_run(forget_in_worker, forgetting, forgetting->let_go_until_ms, error);
        forgetting->releaser->drop(); /* a worker that hangs has it, too */
        return 0;
}

/* Those of mounts in a container that was called so. */
static int forget_called(struct forgetting *forgetting, const char *name, struct error *error)
{
        int r = mount_record_each_called(forgetting->state, name, forget, forgetting, error);

        mount_record_tidy_called(forgetting->state, name);
        return r;
}

int oci_hook_forget(const struct oci_hook *hook, const struct volume_releaser *releaser, struct error *error)
{
        cleanup_state struct state state = STATE_NONE;
        char name[MOUNT_RECORD_WANTED_NAME_SIZE];
        char identity[CONTAINER_IDENTITY_MAX];
        char boot_id[PROC_BOOT_ID_SIZE];
        char state_dir[PATH_MAX];
        struct forgetting forgetting = { .hook = hook,
                                         .releaser = releaser,
                                         .state = &state,
                                         .boot_id = boot_id,
                                         .until_ms = hook->event == HOOK_ENDED ? clock_now_ms() + DYING_MS : 0,
                                         .let_go_until_ms = clock_now_ms() + LET_GO_MS };
        int r = proc_boot_id(boot_id);

        if (r < 0)
                return fail(error, -r, "read", "boot_id");
        if ((r = config_state_dir(state_dir, error)) < 0)
                return r;
        r = mount_record_open(state_dir, /* create= */ false, &state, error);
        if (r < 0)
                return r == -ENOENT ? 0 : r;
        (void)uses_complete(state_dir, &state, error); /* if it fails, all records are read */
        r = forget_called(&forgetting, hook->id, error);
        if (r < 0 || container_identity_oci(hook->id, hook->bundle != NULL ? hook->bundle : "", identity) < 0 ||
            identity[0] == '\0')
                return r;
        wish_key(identity, forgetting.wanted);
        mount_record_wanted_name(forgetting.wanted, name);
        return forget_called(&forgetting, name, error);
}
