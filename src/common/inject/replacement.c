/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/replacement.h"

#include <errno.h>
#include <string.h>

#include "base/fd.h"
#include "base/text.h"
#include "mount/detached.h"
#include "mount/in_container.h"

int replacement_accept(struct injection *injection, const struct mount_record *earlier, struct error *error)
{
        const char *container = injection->container->name;
        char options[sizeof earlier->options];
        int r;

        if (earlier->digest != injection->record.digest) {
                (void)fail_because(error, EBUSY, "find target", injection->request->target,
                                   "flexgraft mounted something else there (record %s)", earlier->id);
                return error_where(error, container);
        }
        r = in_container_options(injection->container, injection->request->target, &earlier->identity, options,
                                 sizeof options, error);
        if (r < 0)
                return r;
        if (strcmp(options, earlier->options) != 0) {
                (void)fail_because(error, EBUSY, "find target", injection->request->target,
                                   "the mount is there, but the container remounted it: %s, not %s", options,
                                   earlier->options);
                return error_where(error, container);
        }
        injection->record = *earlier;
        injection->record.pid = injection->container->pid; /* the container as this call names it */
        (void)text_copy(injection->record.container_id, sizeof injection->record.container_id,
                        injection->container->id);
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
                return fail_because(error, EEXIST, "read record", earlier->id, "this id is in use for the mount on %s",
                                    earlier->target);
        (void)fail_because(error, EBUSY, "find target", injection->request->target,
                           "the container moved or covered the earlier mount for it (record %s)", earlier->id);
        return error_where(error, injection->container->name);
}

int replacement_begin(struct injection *injection, const struct mount_record *earlier, struct error *error)
{
        int r;

        if (strcmp(earlier->mount_point, injection->record.mount_point) != 0) {
                (void)fail_because(error, EBUSY, "find target", injection->request->target,
                                   "the container moved the mount there from %s", earlier->mount_point);
                return error_where(error, injection->container->name);
        }
        if (earlier->raw_device != 0 && injection->kind->settle == NULL) {
                (void)fail_because(error, EBUSY, "find target", injection->request->target,
                                   "a raw device is mounted there; remove it with mount-remove");
                return error_where(error, injection->container->name);
        }
        injection->replaced = *earlier;
        if (!injection->request->dry_run) {
                /* a removal may have handed its directories over to this record; under the lock it cannot */
                r = state_lock(&injection->session->state, mount_record_tree_key(&injection->record.mnt_ns), error);

                if (r == 0)
                        r = mount_record_read(&injection->session->state, earlier->id, &injection->replaced, error);
                if (r < 0)
                        return r;
        }
        if (mount_identity_same(&injection->target.mount, &injection->replaced.replaces)) {
                /*
                 * its call was killed before it placed its mount: the mount at the target is the one that it was to
                 * replace
                 */
                struct mount_record intended = injection->replaced;

                intended.replaces_raw = intended.raw_device;
                intended.raw_device = 0;
                injection->replaced.raw_device = injection->replaced.replaces_raw;
                injection->replaced.raw_before = injection->replaced.replaces_raw_before;
                injection->replaced.raw_writes = true; /* not recorded: assume the most */
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

int replacement_finish_swap(struct injection *injection, const struct mount_record *earlier, struct error *error)
{
        enum placement placement;
        int r;

        if (injection->request->dry_run || !mount_identity_same(&injection->target.mount, &earlier->replaces))
                return 0;
        r = in_container_find(injection->container, earlier->mount_point, &earlier->identity, &placement, error);
        if (r < 0 || placement == PLACEMENT_GONE)
                return r;
        if ((r = session_save_namespace(injection->session, error)) < 0)
                return r;
        r = in_container_remove(injection->container, earlier->mount_point, &earlier->replaces, /* lazily= */ true,
                                error);
        if (r == 0)
                r = session_restore_namespace(injection->session, error);
        return r < 0 ? r : 1;
}

int replacement_settle_raw(const struct injection *injection, struct mount_record *record, struct error *error)
{
        int r = 0;

        if (record->replaces_raw == 0 || injection->kind->settle == NULL)
                return 0;
        r = injection->kind->settle((struct injection *)injection, record, error);
        record->replaces_raw = 0;
        return r < 0 ? r : mount_record_write(&injection->session->state, record, error);
}

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
                return r; /* this call overwrites it anyway */
        if (other.raw_device != 0 && injection->kind->settle != NULL) {
                other.replaces_raw = other.raw_device;
                other.raw_device = 0;
                if ((r = injection->kind->settle(injection, &other, error)) < 0)
                        return r;
        }
        return mount_record_remove(state, other.id, error);
}

/*
 * Places the new mount beneath the old one, and unmounts the old one: something is always mounted. Where the kernel
 * cannot (before Linux 6.5, or if the mount came by propagation), unmounts the old one first. A clone of the old one is
 * kept to restore it on failure.
 */
int replacement_swap(struct injection *injection, struct error *error)
{
        const char *path = injection->record.mount_point;
        int r;

        injection->old_fd = detached_mount_clone_inside(injection->target.fd, injection->container, path,
                                                        /* recursive= */ true, /* user_ns_fd= */ -1, error);
        if (injection->old_fd < 0 && injection->old_fd != -EINVAL) /* EINVAL: unbindable, so it cannot be restored */
                return injection->old_fd;
        injection->placed = true; /* from here on it may be mounted */
        r = in_container_place(injection->mount_fd, injection->container, &injection->target, /* beneath= */ true,
                               &injection->attributes, error);
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
