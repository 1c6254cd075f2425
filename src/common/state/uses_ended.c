/* SPDX-License-Identifier: Apache-2.0 */
#include "state/uses_ended.h"

#include <errno.h>

#include "state/mount_guard.h"
#include "state/mount_record.h"

struct release {
        struct state mounts;
        const char *locked_id;
};

static void release_locked(struct release *release, const struct mount_record *seen, const char *id, bool own)
{
        static struct mount_record record;
        struct error ignored; /* then it stays a use, and says so */

        if (mount_record_read(&release->mounts, id, &record, &ignored) < 0 || record.raw_device != seen->raw_device ||
            !container_same_namespace(&record.mnt_ns, &seen->mnt_ns) || mount_guard_release(&record, &ignored) != 0 ||
            own)
                return;
        (void)mount_record_remove(&release->mounts, id, &ignored);
}

static int release_ended(const struct use *use, void *argument, struct error *error)
{
        struct release *release = argument;
        const char *id = use->ended ? use->mount->id : NULL;

        (void)error;
        if (id == NULL)
                return 0;
        if (release->locked_id != NULL && mount_record_key(release->locked_id) == mount_record_key(id)) {
                release_locked(release, use->mount, id, /* own= */ true);
        } else if (state_try_lock(&release->mounts, mount_record_key(id))) {
                release_locked(release, use->mount, id, /* own= */ false);
                state_unlock(&release->mounts, mount_record_key(id));
        }
        return 0;
}

int uses_release_ended(const char *state_dir, const char *keys, const char *locked_id, struct error *error)
{
        struct release release = { .mounts = STATE_NONE, .locked_id = locked_id };
        int r = mount_record_open(state_dir, /* create= */ false, &release.mounts, error);

        if (r == -ENOENT)
                return 0;
        if (r == 0)
                r = uses_each(state_dir, keys, release_ended, &release, error);
        state_release(&release.mounts);
        return r;
}

struct question {
        uses_function *function;
        void *argument;
};

static int ask_first(const struct use *use, void *argument, struct error *error)
{
        const struct question *question = argument;

        return use->ended ? 1 : question->function(use, question->argument, error);
}

int uses_each_released(const char *state_dir, const char *keys, uses_function *function, void *argument,
                       struct error *error)
{
        struct question question = { .function = function, .argument = argument };
        int r = uses_each(state_dir, keys, ask_first, &question, error);

        if (r <= 0 || (r = uses_release_ended(state_dir, keys, /* locked_id= */ NULL, error)) < 0)
                return r;
        return uses_each(state_dir, keys, function, argument, error);
}
