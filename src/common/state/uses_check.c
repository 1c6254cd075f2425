/* SPDX-License-Identifier: Apache-2.0 */
/* uses_check.c - that nothing is in use, or who uses it, in words; and the end of what ended containers left. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "block/loop_guard.h"
#include "state/mount_record.h"
#include "state/uses.h"

void uses_describe(const struct use *use, char *ret_text)
{
        static const char *const in_volume[] = { [USE_ATTACHED] = "attached as volume", [USE_STAGED] = "volume" };

        if (use->kind == USE_UNREADABLE)
                (void)snprintf(ret_text, USES_TEXT_SIZE, "an unknown user: its record %.200s cannot be read",
                               use->file);
        else if (use->kind == USE_RAW)
                (void)snprintf(ret_text, USES_TEXT_SIZE, "container %s, as the raw device %.400s%s", use->user,
                               use->target,
                               use->ended     ? "; it has ended, but a process still has the device open"
                               : use->removed ? ", which was removed but which the container may have kept"
                                              : "");
        else if (use->removed)
                (void)snprintf(
                        ret_text, USES_TEXT_SIZE,
                        "container %s, where another volume has replaced it on %.400s or it was removed (files of it "
                        "are still open, or it is mounted elsewhere there)",
                        use->user, use->target);
        else if (use->kind == USE_MOUNTED)
                (void)snprintf(ret_text, USES_TEXT_SIZE, "container %s, on %.400s", use->user, use->target);
        else if (use->kind == USE_PUBLISHED && use->user[0] != '\0')
                (void)snprintf(ret_text, USES_TEXT_SIZE, "pod %s, on %.400s", use->user, use->target);
        else if (use->kind == USE_PUBLISHED)
                (void)snprintf(ret_text, USES_TEXT_SIZE, "this node, on %.400s", use->target);
        else
                (void)snprintf(ret_text, USES_TEXT_SIZE, "%s \"%.128s\"%s%.400s", in_volume[use->kind],
                               use->volume->name, use->target[0] != '\0' ? ", on " : "", use->target);
}

static const char *const remedies[] = {
        [USE_ATTACHED] = "detach it first",     [USE_STAGED] = "unmount it first",
        [USE_PUBLISHED] = "unmount it first",   [USE_MOUNTED] = "remove it with mount-remove first",
        [USE_RAW] = "end that container first", [USE_UNREADABLE] = "look at that record",
};

struct check {
        const char *state_dir;
        const struct uses_except *except;
        char *text;
        const char *remedy; /* NULL: no use was found */
};

/* Where a volume by name is staged for its containers, nobody calls for its end (volume/named_stage.h). */
static bool is_own_stage(const struct check *check, const struct use *use)
{
        size_t length = strlen(check->state_dir);

        return use->kind == USE_STAGED && strncmp(use->target, check->state_dir, length) == 0 &&
               text_starts(use->target + length, "/named/");
}

static bool is_excepted(const struct uses_except *except, const struct use *use)
{
        const struct volume_record *volume = use->volume;

        if (except != NULL && except->mount != NULL && use->mount != NULL && strcmp(use->mount->id, except->mount) == 0)
                return true;
        if (except == NULL || except->volume == NULL || volume == NULL || strcmp(volume->name, except->volume) != 0 ||
            (except->driver[0] != '\0' && volume->driver[0] != '\0' && strcmp(volume->driver, except->driver) != 0))
                return false;
        return use->kind == USE_ATTACHED ? except->attached : except->mounted;
}

/* A pod, a container or a process says more than that the volume is staged for it. */
static int take_best(const struct use *use, void *argument, struct error *error)
{
        struct check *check = argument;
        bool weak = use->kind == USE_ATTACHED || use->kind == USE_STAGED;

        (void)error;
        if (is_excepted(check->except, use) || (weak && check->remedy != NULL))
                return 0;
        uses_describe(use, check->text);
        check->remedy = use->removed && use->kind == USE_MOUNTED
                                ? "repeat that mount-volume when they are closed: it looks again"
                        : is_own_stage(check, use)
                                ? "volume-reconcile detaches it once nothing has used it for \"unstageAfter\" seconds"
                                : remedies[use->kind];
        return weak ? 0 : 1;
}

int uses_check_none(const char *state_dir, const char *keys, const struct uses_except *except, const char *operation,
                    const char *subject, struct error *error)
{
        char text[USES_TEXT_SIZE];
        struct check check = { .state_dir = state_dir, .except = except, .text = text };
        int r = uses_each(state_dir, keys, take_best, &check, error);

        if (check.remedy == NULL)
                return r;
        return fail_because(error, EBUSY, operation, subject, "in use by %s; %s", text, check.remedy);
}

bool mount_guard_exists(const struct mount_record *record)
{
        return (record->raw_source != 0 && loop_guard_exists(record->raw_device)) ||
               (record->replaces_raw_source != 0 && loop_guard_exists(record->replaces_raw));
}

int mount_guard_release(const struct mount_record *record, struct error *error)
{
        uint64_t key = mount_record_guard_key(record);
        int r = record->raw_source == 0 ? 0 : loop_guard_release(record->raw_device, key, error);

        return r != 0 || record->replaces_raw_source == 0 ? r : loop_guard_release(record->replaces_raw, key, error);
}

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

int uses_each_released(const char *state_dir, const char *keys, const char *locked_id, uses_function *function,
                       void *argument, struct error *error)
{
        struct question question = { .function = function, .argument = argument };
        int r = uses_each(state_dir, keys, ask_first, &question, error);

        if (r <= 0 || (r = uses_release_ended(state_dir, keys, locked_id, error)) < 0)
                return r;
        return uses_each(state_dir, keys, function, argument, error);
}
