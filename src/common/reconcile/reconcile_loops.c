/* SPDX-License-Identifier: Apache-2.0 */
#include "reconcile/reconcile.h"

#include <errno.h>

#include "base/text.h"
#include "block/device.h"
#include "block/loop.h"
#include "block/loop_guard.h"
#include "provision/disk_uses.h"
#include "state/uses.h"

struct ownership {
        const struct loop_device *loop;
        const char *state_dir;
        bool unsure; /* a record cannot be read: it may be the owner's */
};

static int owns(struct volume_record *record, const char *file, void *argument, struct error *error)
{
        struct ownership *ownership = argument;

        (void)file;
        ownership->unsure = ownership->unsure || (record == NULL && error->errnum != EBADMSG);
        return record != NULL && loop_device_tagged_for(ownership->loop->tag, ownership->state_dir, record->driver,
                                                        volume_record_key(record->name));
}

static int check_list(const struct reconcile_round *round, const struct loop_device *loop, struct error *error)
{
        char keys[USE_KEYS_SIZE] = "";
        int r = disk_uses_add_device(keys, loop->number, BLOCK_STACK_LOOPS, error);

        return r < 0 ? r
                     : uses_check_none(round->config.state_dir, keys, /* except= */ NULL, "detach", loop->path, error);
}

/* Under the volume's lock: no call is between attaching it and writing its record. */
static void reconcile_locked(struct reconcile_round *round, const struct state *state, const struct loop_device *loop,
                             uint64_t key)
{
        struct ownership ownership = { .loop = loop, .state_dir = round->config.state_dir };
        struct block_device device = { .number = loop->number };
        struct error error = {};
        bool lazy;

        /* most often its record names the device; a call that was killed has not written that yet */
        if (volume_record_each_of_device(state, loop->number, owns, &ownership, &error) != 0 ||
            volume_record_each(state, /* set_aside= */ false, owns, &ownership, &error) != 0)
                return;
        if (ownership.unsure) {
                error_because(&error, ENODATA, OPERATION_FIND_RECORD, loop->path,
                              "not detached: it may belong to a volume whose record cannot be read: %s", loop->tag);
                reconcile_problem(round->reconcile, loop->path, &error);
                return;
        }
        /* of pods; what a process has open is not unused, below */
        if (!round->reconcile->dry_run && loop_guard_release_on(loop->path, key, &error) < 0) {
                reconcile_problem(round->reconcile, loop->path, &error);
                return;
        }
        if (check_list(round, loop, &error) < 0) {
                reconcile_problem(round->reconcile, loop->path, &error);
                return;
        }
        (void)text_copy(device.path, sizeof device.path, loop->path);
        if (block_device_check_unused(&device, &error) < 0) {
                error_because(&error, EBUSY, OPERATION_FIND_DEVICE, loop->path,
                              "a loop device of flexgraft without a record that is still in use: %s", loop->tag);
                reconcile_problem(round->reconcile, loop->path, &error);
                return;
        }
        if (!round->reconcile->dry_run && loop_device_detach(loop, &lazy, &error) < 0)
                reconcile_problem(round->reconcile, loop->path, &error);
        else
                reconcile_did(round->reconcile, "detached", loop->path);
}

static int reconcile_loop(const struct loop_device *loop, void *argument, struct error *error)
{
        cleanup_state struct state state = STATE_NONE;
        struct reconcile_round *round = argument;
        uint64_t key;

        if (!loop_device_tagged_by(loop->tag, round->config.state_dir, &key) || loop->ending ||
            loop_device_is_elsewhere(loop))
                return 0;
        if (state_open(round->config.state_dir, "volumes", !round->reconcile->dry_run, &state, error) < 0)
                reconcile_problem(round->reconcile, loop->path, error);
        else if (state_try_lock(&state, key))
                reconcile_locked(round, &state, loop, key);
        return 0;
}

int reconcile_loops(struct reconcile_round *round, struct error *error)
{
        int r = loop_device_each(reconcile_loop, round, error);

        if (r >= 0 && !round->reconcile->dry_run)
                r = loop_guard_tidy(error);
        return r < 0 ? r : 0;
}
