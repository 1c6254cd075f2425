/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/place.h"

#include <errno.h>
#include <string.h>
#include <sys/vfs.h>

#include "base/fd.h"
#include "base/text.h"
#include "inject/replacement.h"
#include "mount/in_container.h"

/* Whether the mount may be placed on the target as it is now. */
static int check_target(struct injection *injection, struct error *error)
{
        const struct target *target = &injection->target;
        const char *path = injection->request->target;

        if (target->mount_root && !injection->replacing)
                (void)fail_because(error, EBUSY, "find target", path, "something is mounted there already");
        else if (target->directory != injection->directory)
                (void)fail_because(error, injection->directory ? ENOTDIR : EISDIR, "find target", path,
                                   injection->directory ? "a directory cannot be mounted on a file"
                                                        : "a file cannot be mounted on a directory");
        else
                return 0;
        return error_where(error, injection->container->name);
}

static int describe(struct injection *injection, struct error *error)
{
        struct mount_record *record = &injection->record;
        struct mount_seen seen;
        struct statfs fs;
        int r = mount_see(injection->mount_fd, "", &seen);

        if (r < 0)
                return fail(error, -r, "statx", record->source);
        if (fstatfs(injection->mount_fd, &fs) < 0)
                return fail(error, errno, "fstatfs", record->source);
        record->identity = seen.identity;
        record->below = record->recursive ? MOUNT_RECORD_NOT_COUNTED : 0;
        r = mount_see_short_id(injection->mount_fd, &record->identity.short_id);
        if (r < 0)
                return fail(error, -r, "statx", record->source);
        mount_options_text((unsigned long)fs.f_flags, record->options, sizeof record->options);
        (void)text_copy(record->type, sizeof record->type, injection->fs_type[0] != '\0' ? injection->fs_type : "bind");
        return 0;
}

int place_record(struct injection *injection, struct error *error)
{
        struct mount_record *record = &injection->record;
        const struct target *target = &injection->target;
        int r;

        if (target->missing == 0 && (r = check_target(injection, error)) < 0)
                return r;
        if ((r = describe(injection, error)) < 0)
                return r;
        record->made = target->missing > injection->made_before ? target->missing : injection->made_before;
        injection->recorded = true; /* from here on it may exist */
        return mount_record_write(&injection->session->state, record, error);
}

int place_make_target(struct injection *injection, struct error *error)
{
        struct target *target = &injection->target;
        int r = target_make(injection->container, target, injection->directory, error);

        if (r < 0)
                return r;
        /* the container may have put something else there by a rename: check as for an existing target */
        return check_target(injection, error);
}

int place_allow_device(struct injection *injection, struct error *error)
{
        return injection->kind->allow(injection, error);
}

int place_mount(struct injection *injection, struct error *error)
{
        int r = container_alive(injection->container, error);

        if (r < 0)
                return r;
        if (injection->replacing) {
                if ((r = session_save_namespace(injection->session, error)) == 0)
                        r = replacement_swap(injection, error);
        } else {
                injection->placed = true; /* from here on it may exist */
                r = in_container_place(injection->mount_fd, injection->container, &injection->target,
                                       /* beneath= */ false, &injection->attributes, error);
        }
        fd_close(&injection->target.fd); /* open, it would make umount in the container fail with EBUSY */
        return r;
}

int place_confirm(struct injection *injection, struct error *error)
{
        const struct request *request = injection->request;
        struct mount_record *record = &injection->record;
        char options[sizeof record->options];
        int r = container_alive(injection->container, error);

        if (r == 0)
                r = in_container_options(injection->container, request->target, &record->identity, options,
                                         sizeof options, error);
        if (r < 0)
                return r;
        if (strcmp(options, record->options) != 0) {
                (void)fail_because(error, ESTALE, "look again", request->target,
                                   "the container remounted it meanwhile: %s, not %s", options, record->options);
                return error_where(error, injection->container->name);
        }
        /* the mounts that came with it: removal tells them from those that the container makes below later */
        if (request->recursive &&
            (r = in_container_count_below(injection->container, record->mount_point, &record->below, error)) < 0)
                return r;
        /* until the old mount's record is removed, ours refers to it */
        if (injection->replacing && strcmp(injection->replaced.id, record->id) != 0)
                r = mount_record_remove(&injection->session->state, injection->replaced.id, error);
        record->replaces = (struct mount_identity){};
        if (r == 0 && (request->recursive || injection->replacing))
                r = mount_record_write(&injection->session->state, record, error);
        if (r == 0 && record->replaces_raw != 0 && (r = session_restore_namespace(injection->session, error)) == 0)
                r = replacement_settle_raw(injection, record, error);
        return r;
}

/* Removes the record, or restores the one before. */
static int undo_record(struct injection *injection, struct error *error)
{
        const struct state *state = &injection->session->state;
        int r = 0;

        if (injection->replacing) {
                r = mount_record_write(state, &injection->replaced, error);
                if (r < 0 || strcmp(injection->replaced.id, injection->record.id) == 0)
                        return r;
        } else if (injection->made_before > 0)
                return mount_record_write(state, &injection->earlier, error);
        return mount_record_remove(state, injection->record.id, error);
}

int place_undo(struct injection *injection, struct error *error)
{
        const struct target *target = &injection->target;
        unsigned left;
        int r = 0;

        if (injection->placed) {
                r = session_save_namespace(injection->session, error);
                if (r == 0)
                        r = in_container_take_back(injection->mount_fd, injection->container, error);
                if (r == 0)
                        r = session_restore_namespace(injection->session, error);
                if (r == 0 && injection->replacing)
                        r = replacement_restore(injection, error);
                if (r < 0)
                        return r;
        }
        fd_close(&injection->target.fd);
        if (injection->recorded) {
                r = target_unmake(injection->container, injection->record.mount_point, target->missing - target->made,
                                  target->made, &left, error);
        }
        if (injection->kind->undo != NULL) {
                struct error other;
                int undone = injection->kind->undo(injection, r == 0 ? error : &other);

                r = r == 0 ? undone : r;
        }
        /* last: the record stays as long as anything is left */
        return r == 0 && injection->recorded ? undo_record(injection, error) : r;
}
