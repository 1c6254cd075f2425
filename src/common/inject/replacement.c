/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/replacement.h"

#include <errno.h>
#include <string.h>

#include "base/fd.h"
#include "base/text.h"
#include "mount/detached.h"
#include "mount/in_container.h"

/* What the errno of a filesystem says that will never answer again: its server's directory, daemon or device is gone. */
static bool is_dead(int errnum)
{
        return errnum == ESTALE || errnum == ENOTCONN || errnum == EIO || errnum == ENODEV;
}

static int explain_dead(const struct injection *injection, int r, struct error *error)
{
        if (r == 0 || strcmp(error->operation, "fstatfs") != 0 || !is_dead(-r))
                return r;
        (void)fail_because(error, -r, OPERATION_FIND_TARGET, injection->request->target,
                           "the mount is there, but its filesystem is dead: %s", error_text(-r));
        return error_where(error, injection->container->name);
}

bool replacement_would_do(const struct error *error)
{
        return strcmp(error->operation, OPERATION_FIND_TARGET) == 0 &&
               (error->errnum == EBUSY || is_dead(error->errnum));
}

int replacement_check_remap(struct injection *injection, struct error *error)
{
        int r = in_container_ask(injection->container, injection->target.fd, injection->request->target, error);

        injection->already = r == 0;
        return explain_dead(injection, r, error);
}

/* Has a record name its container as the record of this call does. */
static void name_container(struct mount_record *record, const struct mount_record *of_call)
{
        record->pid = of_call->pid;
        record->start_time = of_call->start_time;
        record->pid_ns = of_call->pid_ns;
        (void)text_copy(record->container_id, sizeof record->container_id, of_call->container_id);
        (void)text_copy(record->runtime, sizeof record->runtime, of_call->runtime);
}

int replacement_accept(struct injection *injection, const struct mount_record *earlier, struct error *error)
{
        const char *container = injection->container->name;
        static struct mount_record accepted; /* large */
        char options[sizeof earlier->options];
        int r;

        if (earlier->digest != injection->record.digest) {
                (void)fail_because(error, EBUSY, OPERATION_FIND_TARGET, injection->request->target,
                                   "flexgraft mounted something else there (record %s)", earlier->id);
                return error_where(error, container);
        }
        r = in_container_options(injection->container, injection->request->target, &earlier->identity, options,
                                 sizeof options, error);
        if (r < 0)
                return explain_dead(injection, r, error);
        if (strcmp(options, earlier->options) != 0) {
                (void)fail_because(error, EBUSY, OPERATION_FIND_TARGET, injection->request->target,
                                   "the mount is there, but the container remounted it: %s, not %s", options,
                                   earlier->options);
                return error_where(error, container);
        }
        accepted = *earlier;
        name_container(&accepted, &injection->record);
        injection->record = accepted;
        injection->already = true;
        return 0;
}

int replacement_check_earlier(struct injection *injection, const struct mount_record *earlier, struct error *error)
{
        enum placement placement;
        int r = in_container_find(injection->container, earlier->mount_point, &earlier->identity, &placement, error);

        if (r < 0 || placement == PLACEMENT_GONE)
                return r;
        if (strcmp(earlier->target, injection->request->target) != 0)
                return fail_because(error, EEXIST, OPERATION_READ_RECORD, earlier->id,
                                    "this id is in use for the mount on %s", earlier->target);
        (void)fail_because(error, EBUSY, OPERATION_FIND_TARGET, injection->request->target,
                           "the container moved or covered the earlier mount for it (record %s)", earlier->id);
        return error_where(error, injection->container->name);
}

int replacement_refuse_volume(const struct injection *injection, const struct mount_record *earlier,
                              struct error *error)
{
        (void)fail_because(error, EBUSY, OPERATION_FIND_TARGET, injection->request->target,
                           "volume \"%.200s\" was mounted there; remove it with mount-remove first", earlier->volume);
        return error_where(error, injection->container->name);
}

/* A volume is switched while the container uses it: it must not see what is below. */
static int check_atomic(const struct injection *injection, struct error *error)
{
        int r = in_container_knows_beneath();

        if (r == 0)
                return 0;
        if (r == -ENOSYS)
                r = -EOPNOTSUPP;
        (void)fail_because(error, -r, "move_mount beneath", injection->request->target,
                           "a volume is switched with no moment without a mount, and this kernel cannot: that needs "
                           "Linux 6.5 (MOVE_MOUNT_BENEATH)");
        return error_where(error, injection->container->name);
}

static bool is_of_one_mount(const struct mount_record *one, const struct mount_record *other)
{
        return mount_identity_same(&one->identity, &other->identity) &&
               mount_identity_same(&one->replaces, &other->replaces);
}

/* What is mounted there, and how it got there, may be in the way. */
static int check_replaceable(const struct injection *injection, const struct mount_record *earlier, struct error *error)
{
        int r;

        if (earlier->volume[0] != '\0' && !injection->kind->switches)
                return replacement_refuse_volume(injection, earlier, error);
        if (injection->kind->switches && (r = check_atomic(injection, error)) < 0)
                return r;
        if (strcmp(earlier->mount_point, injection->record.mount_point) != 0) {
                (void)fail_because(error, EBUSY, OPERATION_FIND_TARGET, injection->request->target,
                                   "the container moved the mount there from %s", earlier->mount_point);
                return error_where(error, injection->container->name);
        }
        if (earlier->raw_device != 0 && injection->kind->settle == NULL) {
                (void)fail_because(error, EBUSY, OPERATION_FIND_TARGET, injection->request->target,
                                   "a raw device is mounted there; remove it with mount-remove");
                return error_where(error, injection->container->name);
        }
        return 0;
}

/*
 * A removal may have handed its directories over to this record; under the lock it cannot. Returns 1: another call, which
 * found the target by another name, has replaced it while this one waited.
 */
static int read_locked(struct injection *injection, const struct mount_record *earlier, struct error *error)
{
        int r = state_lock(&injection->session->state, mount_record_tree_key(&injection->record.mnt_ns), error);

        if (r == 0)
                r = mount_record_read(&injection->session->state, earlier->id, &injection->replaced, error);
        return r == -ENOENT || (r == 0 && !is_of_one_mount(&injection->replaced, earlier)) ? 1 : r;
}

/* A call was killed before it placed its mount: the mount at the target is the one that it was to replace. */
static int turn_to_former(struct injection *injection, struct error *error)
{
        struct mount_record *replaced = &injection->replaced;
        struct mount_record intended = *replaced;

        if (replaced->volume[0] != '\0')
                return replacement_refuse_volume(injection, replaced, error);
        intended.replaces_raw = intended.raw_device;
        intended.replaces_raw_source = intended.raw_source;
        intended.raw_device = 0;
        intended.raw_source = 0;
        replaced->raw_device = replaced->replaces_raw;
        replaced->raw_before = replaced->replaces_raw_before;
        replaced->raw_source = replaced->replaces_raw_source;
        replaced->raw_writes = true; /* not recorded: assume the most */
        replaced->replaces_raw = 0;
        replaced->replaces_raw_source = 0;
        replaced->digest = 0; /* it is of the other mount's request */
        return injection->request->dry_run || injection->kind->settle == NULL
                       ? 0
                       : injection->kind->settle(injection, &intended, error);
}

/* What the record of the new mount has of the old one. */
static void note_replaced(struct injection *injection)
{
        struct mount_record *replaced = &injection->replaced;
        struct mount_record *record = &injection->record;

        injection->replacing = true;
        if (!mount_identity_same(&replaced->identity, &injection->target.mount)) /* which has no short id */
                replaced->identity = injection->target.mount;
        replaced->replaces = (struct mount_identity){};
        record->replaces = injection->target.mount;
        mount_record_uses(replaced, record->replaces_uses);
        record->replaces_raw = replaced->raw_device;
        record->replaces_raw_before = replaced->raw_before;
        record->replaces_raw_source = replaced->raw_source;
        if (injection->made_before < replaced->made)
                injection->made_before = replaced->made;
}

int replacement_begin(struct injection *injection, const struct mount_record *earlier, struct error *error)
{
        int r = check_replaceable(injection, earlier, error);

        if (r < 0)
                return r;
        injection->replaced = *earlier;
        if (!injection->request->dry_run && (r = read_locked(injection, earlier, error)) != 0)
                return r;
        if (mount_identity_same(&injection->target.mount, &injection->replaced.replaces) &&
            (r = turn_to_former(injection, error)) < 0)
                return r;
        note_replaced(injection);
        return 0;
}

static bool is_pending(const struct injection *injection)
{
        return injection->replacing && strcmp(injection->replaced.id, injection->record.id) == 0;
}

int replacement_write(const struct injection *injection, struct error *error)
{
        static struct mount_record pending;

        if (injection->unrecorded)
                return mount_record_write_first(&injection->session->state, &injection->record, error);
        if (!is_pending(injection))
                return mount_record_write(&injection->session->state, &injection->record, error);
        pending = injection->record;
        mount_record_pending_id(injection->record.id, pending.id);
        return mount_record_write(&injection->session->state, &pending, error);
}

/* At every moment a record has the identity of the new mount. */
int replacement_complete(struct injection *injection, struct error *error)
{
        const struct state *state = &injection->session->state;
        struct mount_record *record = &injection->record;
        char pending[MOUNT_RECORD_ID_MAX];
        int r = 0;

        mount_record_pending_id(record->id, pending);
        if ((r = mount_record_write_former(state, &injection->replaced, error)) < 0)
                return r;
        if (!is_pending(injection)) /* until the replaced mount's record is removed, ours refers to it */
                r = mount_record_remove(state, injection->replaced.id, error);
        record->replaces = (struct mount_identity){};
        if (r == 0)
                r = mount_record_write(state, record, error);
        if (r == 0 && is_pending(injection))
                r = mount_record_remove(state, pending, error);
        return r;
}

/*
 * Places the new mount beneath the old one, and unmounts the old one: something is always mounted. Where the kernel
 * cannot (docs/KERNEL.md#targets-in-a-container; or if the mount came by propagation), unmounts the old one first. A
 * clone of the old one is kept to restore it on failure.
 */
int replacement_swap(struct injection *injection, struct error *error)
{
        const char *path = injection->record.mount_point;
        int r;

        injection->old_fd = detached_mount_clone_inside(injection->target.fd, injection->container, path,
                                                        /* recursive= */ true, /* user_ns_fd= */ -1, error);
        if (injection->old_fd < 0 && injection->old_fd != -EINVAL && /* unbindable: it cannot be restored */
            injection->old_fd != -ESTALE)                            /* unmounted just now: nothing is to be restored */
                return injection->old_fd;
        injection->placed = true; /* from here on it may be mounted */
        r = in_container_place(injection->mount_fd, injection->container, &injection->target, /* beneath= */ true,
                               &injection->attributes, error);
        if (r == -EINVAL && injection->kind->switches)
                return fail_because(error, EOPNOTSUPP, "move_mount beneath", injection->request->target,
                                    "the kernel cannot put the volume beneath the mount that is there: that mount came "
                                    "by propagation, or is the container's root");
        if (r < 0 && r != -EINVAL)
                return r;
        injection->atomic = r == 0;
        fd_close(&injection->target.fd); /* open, it would keep the old mount busy */
        r = in_container_remove(injection->container, path, &injection->record.replaces, /* lazily= */ true, error);
        if (r < 0 || injection->atomic)
                return r;
        if ((r = session_restore_namespace(injection->session, error)) < 0 ||
            (r = target_look(injection->container, injection->request->target, &injection->target, error)) < 0)
                return r;
        return in_container_place(injection->mount_fd, injection->container, &injection->target, /* beneath= */ false,
                                  &injection->attributes, error);
}

/* It is a clone, with another mount id than the record's. */
int replacement_restore(struct injection *injection, bool beneath, struct error *error)
{
        struct mount_record *old = &injection->replaced;
        const struct mount_attributes as_it_was = { .recursive = true };
        cleanup_target struct target target;
        enum placement placement;
        struct mount_seen seen;
        int r;

        target_init(&target);
        r = in_container_find(injection->container, old->mount_point, &old->identity, &placement, error);
        if (r < 0 || placement != PLACEMENT_GONE || injection->old_fd < 0)
                return r;
        if (beneath) { /* the new one, where it is still on top */
                r = in_container_find(injection->container, old->mount_point, &injection->record.identity, &placement,
                                      error);
                if (r < 0 || placement != PLACEMENT_PRESENT)
                        return r;
        }
        if ((r = target_look(injection->container, old->mount_point, &target, error)) < 0)
                return r;
        if (target.missing > 0)
                return container_fail(injection->container, ENOENT, OPERATION_FIND_TARGET, old->mount_point, error);
        r = mount_see(injection->old_fd, "", &seen);
        if (r == 0) {
                old->identity = seen.identity;
                r = mount_see_short_id(injection->old_fd, &old->identity.short_id);
        }
        if (r < 0)
                return fail(error, -r, "statx", old->mount_point);
        if ((r = mount_record_write(&injection->session->state, old, error)) < 0)
                return r;
        return in_container_place(injection->old_fd, injection->container, &target, beneath, &as_it_was, error);
}
