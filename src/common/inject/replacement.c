/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/replacement.h"

#include <errno.h>
#include <string.h>

#include "base/fd.h"
#include "base/text.h"
#include "mount/detached.h"
#include "mount/in_container.h"

/* The record's mount is on top at the target: done already, if it is the one that is asked for. */
int replacement_accept(struct injection *injection, const struct mount_record *earlier, struct error *error)
{
        const char *container = injection->container->name;
        char options[sizeof earlier->options];
        int r;

        if (earlier->digest != injection->record.digest) {
                (void)fail_because(error, EBUSY, "find target", injection->request->target,
                                   "an earlier call (record %s) put another mount there", earlier->id);
                return error_where(error, container);
        }
        r = in_container_options(injection->container, injection->request->target, &earlier->identity, options,
                                 sizeof options, error);
        if (r < 0)
                return r;
        if (strcmp(options, earlier->options) != 0) {
                (void)fail_because(error, EBUSY, "find target", injection->request->target,
                                   "the mount is there, but inside the container it was remounted: %s, not %s", options,
                                   earlier->options);
                return error_where(error, container);
        }
        injection->record = *earlier;
        injection->record.pid = injection->container->pid; /* as this call named the container */
        (void)text_copy(injection->record.container_id, sizeof injection->record.container_id,
                        injection->container->id);
        injection->already = true;
        return 0;
}

/* The record's mount is not at the target. Its record may be written over once the mount is nowhere else, either. */
int replacement_check_earlier(struct injection *injection, const struct mount_record *earlier, struct error *error)
{
        enum placement placement;
        int r = in_container_find(injection->container, earlier->mount_point, &earlier->identity, &placement, error);

        if (r < 0 || placement == PLACEMENT_GONE)
                return r;
        if (strcmp(earlier->target, injection->request->target) != 0)
                return fail_because(error, EEXIST, "read record", earlier->id, "this id names the mount on %s already",
                                    earlier->target);
        (void)fail_because(error, EBUSY, "find target", injection->request->target,
                           "an earlier mount for it (record %s) was moved or covered inside the container",
                           earlier->id);
        return error_where(error, injection->container->name);
}

/* What is on top at the target is this record's: it gives way to what is asked for. */
int replacement_begin(struct injection *injection, const struct mount_record *earlier, struct error *error)
{
        int r;

        if (strcmp(earlier->mount_point, injection->record.mount_point) != 0) {
                (void)fail_because(error, EBUSY, "find target", injection->request->target,
                                   "what is mounted there was moved inside the container, from %s",
                                   earlier->mount_point);
                return error_where(error, injection->container->name);
        }
        if (earlier->raw_device != 0 && injection->kind->settle == NULL) {
                (void)fail_because(error, EBUSY, "find target", injection->request->target,
                                   "what is mounted there is a raw device; mount-remove takes it away");
                return error_where(error, injection->container->name);
        }
        injection->replaced = *earlier;
        if (!injection->request->dry_run) {
                /* a mount taken away meanwhile may hand its directories over to this one, but not from here on */
                r = state_lock(&injection->session->state, mount_record_tree_key(&injection->record.mnt_ns), error);

                if (r == 0)
                        r = mount_record_read(&injection->session->state, earlier->id, &injection->replaced, error);
                if (r < 0)
                        return r;
        }
        if (mount_identity_same(&injection->target.mount, &injection->replaced.replaces)) {
                /* its call was killed before it placed anything: what is there is still what that was to replace */
                struct mount_record intended = injection->replaced;

                intended.replaces_raw = intended.raw_device;
                intended.raw_device = 0;
                injection->replaced.raw_device = injection->replaced.replaces_raw;
                injection->replaced.raw_before = injection->replaced.replaces_raw_before;
                injection->replaced.raw_writes = true; /* as far as anybody knows */
                injection->replaced.replaces_raw = 0;
                if (!injection->request->dry_run && injection->kind->settle != NULL &&
                    (r = injection->kind->settle(injection, &intended, error)) < 0)
                        return r;
        }
        injection->replacing = true;
        injection->replaced.identity = injection->target.mount;
        injection->record.replaces = injection->target.mount;
        injection->record.replaces_raw = injection->replaced.raw_device;
        injection->record.replaces_raw_before = injection->replaced.raw_before;
        injection->made_before = injection->replaced.made;
        return 0;
}

/*
 * An earlier call swapped mounts and was killed on the way: the new one lies beneath the old one. The old one goes now.
 * 1 done, 0 there is nothing to finish, or negative errno.
 */
int replacement_finish_swap(struct injection *injection, const struct mount_record *earlier, struct error *error)
{
        enum placement placement;
        int r;

        if (injection->request->dry_run || !mount_identity_same(&injection->target.mount, &earlier->replaces))
                return 0;
        r = in_container_find(injection->container, earlier->mount_point, &earlier->identity, &placement, error);
        if (r < 0 || placement == PLACEMENT_GONE)
                return r;
        if ((r = session_remember_home(injection->session, error)) < 0)
                return r;
        r = in_container_remove(injection->container, earlier->mount_point, &earlier->replaces, /* lazily= */ true,
                                error);
        if (r == 0)
                r = session_go_home(injection->session, error);
        return r < 0 ? r : 1;
}

/* The raw device of what was replaced, if it had one, is not needed for that any more; from here on nobody knows it. */
int replacement_settle_raw(const struct injection *injection, struct mount_record *record, struct error *error)
{
        int r = 0;

        if (record->replaces_raw == 0 || injection->kind->settle == NULL)
                return 0;
        r = injection->kind->settle((struct injection *)injection, record, error);
        record->replaces_raw = 0;
        return r < 0 ? r : mount_record_write(&injection->session->state, record, error);
}

/* The swap of a killed call is over: the old mount's record goes if it has another id, and ours forgets about it. */
int replacement_forget(const struct injection *injection, struct mount_record *earlier, struct error *error)
{
        static struct mount_record other;
        const struct state *state = &injection->session->state;
        int r;

        if (injection->request->dry_run)
                return 0;
        if (earlier->replaces.id == 0)
                return replacement_settle_raw(injection, earlier, error);
        r = mount_record_find(state, injection->container, injection->record.boot_id, &earlier->replaces,
                              /* by_root= */ true, earlier->id, &other, error);
        if (r == 0)
                r = mount_record_remove(state, other.id, error);
        if (r < 0 && r != -ENOENT)
                return r;
        earlier->replaces = (struct mount_identity){};
        r = mount_record_write(state, earlier, error);
        return r < 0 ? r : replacement_settle_raw(injection, earlier, error);
}

/*
 * Another call was killed while it was to replace what is there, whatever it called that: it is brought to an end. Its
 * mount lies beneath: then the one on top goes, as it was to. There is none: then its record goes. 1 the target is to
 * be looked at again, 0 nothing was left, or negative errno.
 */
int replacement_finish_other(struct injection *injection, struct error *error)
{
        static struct mount_record other;
        const struct state *state = &injection->session->state;
        int r = mount_record_find_replacing(state, injection->container, injection->record.boot_id,
                                            &injection->target.mount, &other, error);

        if (r < 0)
                return r == -ENOENT ? 0 : r;
        r = replacement_finish_swap(injection, &other, error);
        if (r > 0) {
                r = replacement_forget(injection, &other, error);
                return r < 0 ? r : 1;
        }
        if (r < 0 || strcmp(other.id, injection->record.id) == 0)
                return r; /* our own record is written over anyway */
        if (other.raw_device != 0 && injection->kind->settle != NULL) {
                other.replaces_raw = other.raw_device;
                other.raw_device = 0;
                if ((r = injection->kind->settle(injection, &other, error)) < 0)
                        return r;
        }
        return mount_record_remove(state, other.id, error);
}

/*
 * The new mount is placed beneath the old one, which then goes: the target is never bare. Where the kernel cannot do
 * that (before Linux 6.5, or for a mount that came by propagation) the old one goes first. A clone of it is kept until
 * everything is done: it comes back if anything fails.
 */
int replacement_swap(struct injection *injection, struct error *error)
{
        const char *path = injection->record.mount_point;
        int r;

        injection->old_fd = detached_mount_clone_inside(injection->target.fd, injection->container, path,
                                                        /* recursive= */ true, /* user_ns_fd= */ -1, error);
        if (injection->old_fd < 0 && injection->old_fd != -EINVAL) /* EINVAL: unbindable; then there is no way back */
                return injection->old_fd;
        injection->placed = true; /* from here on it may be there */
        r = in_container_place(injection->mount_fd, injection->container, &injection->target, /* beneath= */ true,
                               &injection->attributes, error);
        if (r < 0 && r != -EINVAL)
                return r;
        injection->atomic = r == 0;
        fd_close(&injection->target.fd); /* held, it keeps the old one */
        r = in_container_remove(injection->container, path, &injection->record.replaces, /* lazily= */ true, error);
        if (r < 0 || injection->atomic)
                return r;
        if ((r = session_go_home(injection->session, error)) < 0 ||
            (r = target_look(injection->container, injection->request->target, &injection->target, error)) < 0)
                return r;
        return in_container_place(injection->mount_fd, injection->container, &injection->target, /* beneath= */ false,
                                  &injection->attributes, error);
}

/* The mount that was to be replaced, at its place again: another mount of the same, so its record tells another id. */
int replacement_restore(struct injection *injection, struct error *error)
{
        struct mount_record *old = &injection->replaced;
        const struct mount_attributes as_it_was = { .recursive = true };
        cleanup_target struct target target = TARGET_NONE;
        enum placement placement;
        struct mount_seen seen;
        int r = in_container_find(injection->container, old->mount_point, &old->identity, &placement, error);

        if (r < 0 || placement != PLACEMENT_GONE || injection->old_fd < 0)
                return r;
        if ((r = target_look(injection->container, old->mount_point, &target, error)) < 0)
                return r;
        if (target.missing > 0)
                return container_fail(injection->container, ENOENT, "find target", old->mount_point, error);
        r = mount_see(injection->old_fd, "", &seen);
        if (r == 0) {
                old->identity = seen.identity;
                r = mount_see_short_id(injection->old_fd, &old->identity.short_id);
        }
        if (r < 0)
                return fail(error, -r, "statx", old->mount_point);
        if ((r = mount_record_write(&injection->session->state, old, error)) < 0)
                return r;
        return in_container_place(injection->old_fd, injection->container, &target, /* beneath= */ false, &as_it_was,
                                  error);
}
