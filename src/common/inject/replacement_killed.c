/* SPDX-License-Identifier: Apache-2.0 */
/* replacement_killed.c - what calls that were killed while they replaced a mount left to do. */
#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "inject/replacement.h"
#include "mount/in_container.h"

/* The intent of a call that placed no mount. Its device may be allowed already. */
static int forget_intent(struct injection *injection, struct mount_record *intended, struct error *error)
{
        int r;

        if (intended->raw_device != 0 && injection->kind->settle == NULL) {
                (void)fail_because(error, EBUSY, OPERATION_FIND_TARGET, injection->request->target,
                                   "a call for a raw device was interrupted there; remove it with mount-remove");
                return error_where(error, injection->container->name);
        }
        if (intended->raw_device != 0) {
                intended->replaces_raw = intended->raw_device;
                intended->replaces_raw_source = intended->raw_source;
                intended->raw_device = 0;
                intended->raw_source = 0;
                if ((r = injection->kind->settle(injection, intended, error)) < 0)
                        return r;
        }
        r = mount_record_write_former(&injection->session->state, intended, error); /* its volume may be staged */
        return r < 0 ? r : mount_record_remove(&injection->session->state, intended->id, error);
}

/* The volume of a record that will be overwritten. */
static int keep_former(const struct injection *injection, const char *id, const struct mount_identity *placed,
                       struct error *error)
{
        static struct mount_record former;
        struct error ignored; /* then there is nothing to keep */

        if (mount_record_read(&injection->session->state, id, &former, &ignored) < 0 ||
            !mount_record_is_of(&former, injection->container, injection->record.boot_id) ||
            mount_identity_same(&former.identity, placed)) /* its call was killed when it had written it already */
                return 0;
        return mount_record_write_former(&injection->session->state, &former, error);
}

int replacement_settle_pending(struct injection *injection, const char *id, struct error *error)
{
        static struct mount_record record;
        const struct container *container = injection->container;
        const struct state *state = &injection->session->state;
        char pending[MOUNT_RECORD_ID_MAX];
        enum placement placement = PLACEMENT_GONE;
        int r;

        mount_record_pending_id(id, pending);
        r = mount_record_read(state, pending, &record, error);
        if (r == -ENOENT || r == -EBADMSG ||
            (r == 0 && !mount_record_is_of(&record, container, injection->record.boot_id)))
                return 0;
        if (r == 0)
                r = in_container_find(container, record.mount_point, &record.identity, &placement, error);
        if (r < 0)
                return r;
        if (placement == PLACEMENT_GONE) {
                r = forget_intent(injection, &record, error);
                return r < 0 ? r : 1;
        }
        r = in_container_find(container, record.mount_point, &record.replaces, &placement, error);
        if (r < 0 || placement == PLACEMENT_COVERED)
                return r;
        if (placement == PLACEMENT_PRESENT) {
                if ((r = session_save_namespace(injection->session, error)) < 0)
                        return r;
                r = in_container_remove(container, record.mount_point, &record.replaces, /* lazily= */ true, error);
                if (r == 0)
                        r = session_restore_namespace(injection->session, error);
                if (r < 0)
                        return r;
        }
        (void)text_copy(record.id, sizeof record.id, id);
        record.replaces = (struct mount_identity){};
        if ((r = keep_former(injection, id, &record.identity, error)) < 0 ||
            (r = mount_record_write(state, &record, error)) < 0 ||
            (r = mount_record_remove(state, pending, error)) < 0 ||
            (r = replacement_settle_raw(injection, &record, error)) < 0)
                return r;
        return 1;
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
        record->replaces_raw_source = 0;
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
        if (r == 0 && (r = mount_record_write_former(state, &other, error)) == 0)
                r = mount_record_remove(state, other.id, error);
        if (r < 0 && r != -ENOENT)
                return r;
        earlier->replaces = (struct mount_identity){};
        r = mount_record_write(state, earlier, error);
        return r < 0 ? r : replacement_settle_raw(injection, earlier, error);
}

/*
 * The lock of another record, which the call that is at work on it holds. Not waited for: that call may wait for ours.
 * Returns 1: the record has changed meanwhile, look again.
 */
static int lock_other(struct injection *injection, const struct mount_record *other, struct error *error)
{
        static struct mount_record now;
        struct state *state = &injection->session->state;
        int r;

        if (!state_try_lock(state, mount_record_key(other->id))) {
                (void)fail_because(error, EBUSY, OPERATION_FIND_TARGET, injection->request->target,
                                   "another call is replacing the mount there (record %s); try again", other->id);
                return error_where(error, injection->container->name);
        }
        r = mount_record_read(state, other->id, &now, error);
        if (r < 0)
                return r == -ENOENT ? 1 : r;
        return mount_identity_same(&now.replaces, &other->replaces) &&
                               mount_identity_same(&now.identity, &other->identity)
                       ? 0
                       : 1;
}

int replacement_finish_other(struct injection *injection, struct error *error)
{
        static struct mount_record other;
        static struct mount_record placed;
        const struct state *state = &injection->session->state;
        int r = mount_record_find_replacing(state, injection->container, injection->record.boot_id,
                                            &injection->target.mount, &other, error);

        if (r < 0)
                return r == -ENOENT ? 0 : r;
        if (!mount_record_same_id(other.id, injection->record.id) && (r = lock_other(injection, &other, error)) != 0)
                return r;
        if (mount_record_is_pending(other.id)) {
                mount_record_settle_id(other.id);
                return replacement_settle_pending(injection, other.id, error);
        }
        r = replacement_finish_swap(injection, &other, error);
        if (r > 0) {
                r = replacement_forget(injection, &other, error);
                return r < 0 ? r : 1;
        }
        if (r < 0 || strcmp(other.id, injection->record.id) == 0)
                return r; /* this call overwrites it anyway */
        /* it may be the only record of the mount that is there: earlier versions overwrote that one */
        r = mount_record_find_placed(state, injection->container, injection->record.boot_id, &injection->target.mount,
                                     other.id, &placed, error);
        if (r < 0)
                return r == -ENOENT ? 0 : r;
        return forget_intent(injection, &other, error);
}
