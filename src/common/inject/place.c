/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/steps.h"

#include <errno.h>
#include <string.h>
#include <sys/vfs.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/text.h"
#include "block/loop_guard.h"
#include "inject/replacement.h"
#include "mount/in_container.h"
#include "process/worker.h"
#include "state/access.h"

/* Whether the mount may be placed on the target as it is now. */
static int check_target(struct injection *injection, struct error *error)
{
        const struct target *target = &injection->target;
        const char *path = injection->request->target;

        if (target->mount_root && !injection->replacing)
                (void)fail_because(error, EBUSY, OPERATION_FIND_TARGET, path, "something is mounted there already");
        else if (target->directory != injection->directory)
                (void)fail_because(error, injection->directory ? ENOTDIR : EISDIR, OPERATION_FIND_TARGET, path,
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
        if (injection->from != NULL)
                use_keys_add_opened(record->uses, injection->mount_fd); /* the source may have been made only now */
        record->since = clock_seconds();
        record->identity = seen.identity;
        record->below = record->recursive ? MOUNT_RECORD_NOT_COUNTED : 0;
        r = mount_see_short_id(injection->mount_fd, &record->identity.short_id);
        if (r < 0)
                return fail(error, -r, "statx", record->source);
        mount_options_text((unsigned long)fs.f_flags, record->options, sizeof record->options);
        (void)text_copy(record->type, sizeof record->type,
                        injection->fs_type[0] != '\0' ? injection->fs_type : MOUNT_RECORD_CLONE);
        return 0;
}

/* A raw device of a record that is about to be replaced stays recorded as long as it may be in use. */
static int keep_device(const struct injection *injection, const struct mount_record *earlier, struct error *error)
{
        if (earlier->raw_source == 0 || earlier->raw_device == injection->record.raw_device ||
            !loop_guard_exists(earlier->raw_device))
                return 0;
        return mount_record_write_removed(&injection->session->state, earlier, error);
}

/*
 * The raw devices and the volume of the record of which this call's takes the place; also of one whose replacement was
 * interrupted.
 */
static int keep_stranded(const struct injection *injection, struct error *error)
{
        static struct mount_record earlier;
        const struct state *state = &injection->session->state;
        char id[MOUNT_RECORD_ID_MAX];
        struct error ignored; /* then there is nothing to keep */
        int r;

        if (injection->unrecorded)
                return 0;
        if (injection->replacing && strcmp(injection->replaced.id, injection->record.id) == 0)
                mount_record_pending_id(injection->record.id, id); /* the mount at the target has the record itself */
        else
                (void)text_copy(id, sizeof id, injection->record.id);
        if (mount_record_read(state, id, &earlier, &ignored) < 0)
                return 0;
        if (strcmp(earlier.volume, injection->record.volume) != 0 &&
            mount_record_is_of(&earlier, injection->container, injection->record.boot_id) &&
            (r = mount_record_write_former(state, &earlier, error)) < 0)
                return r;
        r = keep_device(injection, &earlier, error);
        earlier.raw_device = earlier.replaces_raw;
        earlier.raw_source = earlier.replaces_raw_source;
        return r < 0 ? r : keep_device(injection, &earlier, error);
}

/* How many components of the target are flexgraft's: those that are missing yet, or those that an earlier call made. */
static unsigned made_of(const struct injection *injection)
{
        return injection->target.missing > injection->made_before ? injection->target.missing : injection->made_before;
}

int place_record(struct injection *injection, struct error *error)
{
        struct mount_record *record = &injection->record;
        const struct target *target = &injection->target;
        int r;

        if (injection->request->wanted && (r = want_check(injection, error)) < 0)
                return r;
        if (target->missing == 0 && (r = check_target(injection, error)) < 0)
                return r;
        if ((r = describe(injection, error)) < 0 || (r = keep_stranded(injection, error)) < 0)
                return r;
        record->made = made_of(injection);
        injection->recorded = true; /* from here on it may exist */
        if ((r = replacement_write(injection, error)) < 0)
                return r;
        if (injection->kind->check_recorded != NULL && (r = injection->kind->check_recorded(injection, error)) < 0)
                return r;
        if (injection->alone &&
            (r = access_check_alone(injection->session->state_dir, record, injection->volume_file, error)) < 0)
                return r;
        return access_check_container(
                &injection->session->state, injection->session->state_dir, record, injection->volume_file,
                record->raw_device != 0 ? record->raw_writes : !text_starts(record->options, "ro"), error);
}

/* What the container has made since the target was looked at is its own: a removal leaves it. */
static int record_made(struct injection *injection, unsigned missing, struct error *error)
{
        struct mount_record *record = &injection->record;

        if (injection->target.missing == missing || injection->made_before >= missing)
                return 0;
        record->made = made_of(injection);
        return mount_record_write(&injection->session->state, record, error);
}

int place_make_target(struct injection *injection, struct error *error)
{
        struct target *target = &injection->target;
        const unsigned missing = target->missing;
        int r = target_make(injection->container, target, injection->directory, error);

        if (r < 0 || (r = record_made(injection, missing, error)) < 0)
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
                (void)fail_because(error, ESTALE, OPERATION_LOOK_AGAIN, request->target,
                                   "the container remounted it meanwhile: %s, not %s", options, record->options);
                return error_where(error, injection->container->name);
        }
        /* the mounts that came with it: removal tells them from those that the container makes below later */
        if (request->recursive &&
            (r = in_container_count_below(injection->container, record->mount_point, &record->below, error)) < 0)
                return r;
        if (injection->replacing)
                return replacement_complete(injection, error);
        return request->recursive ? mount_record_write(&injection->session->state, record, error) : 0;
}

/* Removes the record, or restores those before. */
static int undo_record(struct injection *injection, struct error *error)
{
        const struct state *state = &injection->session->state;
        char pending[MOUNT_RECORD_ID_MAX];
        int r = 0;

        if (injection->replacing) {
                mount_record_pending_id(injection->record.id, pending);
                if ((r = mount_record_write(state, &injection->replaced, error)) < 0 ||
                    strcmp(injection->replaced.id, injection->record.id) == 0)
                        return r < 0 ? r : mount_record_remove(state, pending, error);
        }
        return injection->has_earlier ? mount_record_write(state, &injection->earlier, error)
                                      : mount_record_remove(state, injection->record.id, error);
}

/*
 * Where the mount was replaced with no moment without one, that is undone so, too; if the kernel cannot, what is to be
 * restored comes after. What undoes the rest works on the node.
 */
static int take_back(struct injection *injection, struct error *error)
{
        const struct session *session = injection->session;
        struct error ignored;
        int r = session_save_namespace(injection->session, error);

        if (r == 0 && injection->replacing && injection->atomic) {
                (void)replacement_restore(injection, /* beneath= */ true, &ignored);
                r = session_restore_namespace(session, error);
        }
        if (r < 0 || (r = in_container_take_back(injection->mount_fd, injection->container, error)) < 0 ||
            (r = session_restore_namespace(session, error)) < 0 || !injection->replacing)
                return r;
        r = replacement_restore(injection, /* beneath= */ false, error);
        return r < 0 ? r : session_restore_namespace(session, error);
}

int place_undo(struct injection *injection, struct error *error)
{
        const struct target *target = &injection->target;
        unsigned left;
        int r;

        (void)worker_waits_for_others(true);
        r = injection->placed ? take_back(injection, error) : 0;
        if (r < 0)
                return r;
        fd_close(&injection->mount_fd); /* a worker that hangs in move_mount places nothing any more */
        fd_close(&injection->target.fd);
        if (injection->recorded) {
                r = target_unmake(injection->container, injection->record.mount_point, target->missing - target->made,
                                  target->made, target, &left, error);
        }
        (void)worker_waits_for_others(false);
        if (injection->kind->undo != NULL) {
                struct error other;
                int undone = injection->kind->undo(injection, r == 0 ? error : &other);

                r = r == 0 ? undone : r;
        }
        /* last: the record stays as long as anything is left */
        return r == 0 && injection->recorded ? undo_record(injection, error) : r;
}
