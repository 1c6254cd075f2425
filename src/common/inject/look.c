/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/steps.h"

#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "inject/removal.h"
#include "inject/replacement.h"
#include "mount/in_container.h"

/* A call with the id of this record was killed while it replaced a mount: 1 finished, look again; 0 nothing was left. */
static int settle_other(struct injection *injection, struct mount_record *other, struct error *error)
{
        char id[MOUNT_RECORD_ID_MAX];
        int r;

        (void)text_copy(id, sizeof id, other->id);
        mount_record_settle_id(id);
        r = replacement_settle_pending(injection, id, error);
        if (r == 0 && !mount_record_is_pending(other->id) && other->replaces.id != 0 &&
            mount_identity_same(&injection->target.mount, &other->identity))
                r = replacement_forget(injection, other, error);
        return r;
}

/* A mount is exactly at the target. 1: look again. */
static int look_at_mount(struct injection *injection, struct mount_record *known, struct error *error)
{
        const struct request *request = injection->request;
        static struct mount_record other;
        int r;

        if (known != NULL && mount_identity_same(&injection->target.mount, &known->identity)) {
                if ((r = replacement_forget(injection, known, error)) < 0)
                        return r;
                r = replacement_accept(injection, known, error);
                if (r == 0 && known->remap_key != 0) {
                        if (mount_record_remap_lives(&injection->session->state, known->remap_key))
                                r = replacement_check_remap(injection, error);
                        else if (!request->dry_run) {
                                injection->already = false; /* it is mounted, but remap-daemon does not run */
                                return replacement_begin(injection, known, error);
                        }
                }
                return r < 0 && request->replace && replacement_would_do(error)
                               ? replacement_begin(injection, known, error)
                               : r;
        }
        if (request->replace && injection->session->state.dir_fd >= 0) {
                const struct state *state = &injection->session->state;
                const char *boot_id = injection->record.boot_id;

                /* first another record: ours may be from a call that was killed before it placed its mount */
                r = mount_record_find(state, injection->container, boot_id, &injection->target.mount,
                                      /* by_root= */ true, injection->record.id, &other, error);
                if (r == -ENOENT)
                        r = mount_record_find(state, injection->container, boot_id, &injection->target.mount,
                                              /* by_root= */ true, /* except= */ NULL, &other, error);
                if (r == 0 && mount_record_is_above(&other, injection->target.path))
                        r = -ENOENT; /* as in find_by_mount() (removal_find.c): EBUSY below */
                if (r == 0 && !request->dry_run) {
                        bool pending = mount_record_is_pending(other.id);

                        if ((r = settle_other(injection, &other, error)) != 0)
                                return r;
                        if (pending) /* the container covered the mount that it replaces */
                                r = -ENOENT;
                }
                if (r != -ENOENT)
                        return r < 0 ? r : replacement_begin(injection, &other, error);
        }
        (void)fail_because(error, EBUSY, OPERATION_FIND_TARGET, request->target, "something is mounted there already");
        return error_where(error, injection->container->name);
}

/* Looks the target up; takes the tree lock if part of it has to be created. */
static int find_target(struct injection *injection, struct error *error)
{
        const struct request *request = injection->request;
        int r;

        target_release(&injection->target);
        r = target_look(injection->container, request->target, &injection->target, error);
        if (r == 0 && injection->target.missing > 0 && !request->dry_run) {
                /* once more under the lock: no other call creates or removes mount points in this container now */
                target_release(&injection->target);
                r = state_lock(&injection->session->state, mount_record_tree_key(&injection->record.mnt_ns), error);
                if (r == 0)
                        r = target_look(injection->container, request->target, &injection->target, error);
        }
        return r;
}

/*
 * The record of this call's id is of a mount elsewhere in the container that is gone: the call that removed or made it
 * was killed, or the container unmounted it. What was made for that mount is taken away before the record is replaced.
 * 1: look again.
 */
static int unmake_earlier(struct injection *injection, struct mount_record *earlier, struct error *error)
{
        struct state *state = &injection->session->state;
        enum placement placement;
        bool ignored; /* this call cannot give up its locks to wait for another */
        int r;

        if (injection->request->dry_run || earlier->made == 0 || earlier->removed ||
            strcmp(earlier->mount_point, injection->target.path) == 0)
                return 0;
        r = in_container_find(injection->container, earlier->mount_point, &earlier->identity, &placement, error);
        if (r < 0 || placement != PLACEMENT_GONE)
                return r;
        target_release(&injection->target);
        r = state_lock(state, mount_record_tree_key(&earlier->mnt_ns), error);
        if (r == 0) /* until then a removal may have handed more over to it */
                r = mount_record_read(state, earlier->id, earlier, error);
        if (r < 0 || (r = made_unmake(state, injection->container, earlier, &ignored, error)) < 0)
                return r;
        earlier->made = 0;
        r = mount_record_write(state, earlier, error);
        return r < 0 ? r : 1;
}

/* The record of this call's id. Gives: ret_known, whether it is of a mount in this container since this boot. */
static int read_earlier(struct injection *injection, struct mount_record *ret_earlier, bool *ret_known,
                        struct error *error)
{
        const struct state *state = &injection->session->state;
        const struct mount_record *record = &injection->record;
        cleanup_container struct container alive = CONTAINER_NONE;
        int r = state->dir_fd < 0 ? -ENOENT : mount_record_read(state, record->id, ret_earlier, error);

        if (r < 0 && r != -ENOENT && r != -EBADMSG)
                return r;
        injection->unrecorded = r == -ENOENT;
        *ret_known = r == 0 && mount_record_is_of(ret_earlier, injection->container, record->boot_id);
        /* one of a container that has ended, or of an earlier boot, says nothing about this mount */
        if (r < 0 || *ret_known || strcmp(ret_earlier->boot_id, record->boot_id) != 0)
                return 0;
        r = mount_record_reach(ret_earlier, record->boot_id, &alive, error);
        if (r < 0)
                return r == -ESRCH ? 0 : r;
        return fail_because(error, EEXIST, OPERATION_READ_RECORD, record->id,
                            "this id names a mount in another container (pid %d)", ret_earlier->pid);
}

/* What killed calls have left at the target, and of this id, is finished. 1: look again. */
static int finish_killed(struct injection *injection, struct mount_record *known, struct error *error)
{
        const struct request *request = injection->request;
        int r;

        if (known != NULL && (r = unmake_earlier(injection, known, error)) != 0)
                return r;
        if (known != NULL && injection->target.mount_root &&
            (r = replacement_finish_swap(injection, known, error)) != 0 &&
            (r < 0 || (r = find_target(injection, error)) < 0))
                return r;
        return injection->target.mount_root && request->replace && !request->dry_run
                       ? replacement_finish_other(injection, error)
                       : 0;
}

/*
 * A mount point that is no UTF-8 is recorded as the target that was asked for, of which no more components can be made
 * than it has (is_sound() in state/mount_record.c). A symbolic link whose end is missing may lead to more.
 */
static int check_recordable(const struct injection *injection, struct error *error)
{
        cleanup_json json_t *text = json_string(injection->record.mount_point);

        if (text != NULL || injection->target.missing <= text_count(injection->record.target, '/'))
                return 0;
        (void)fail_because(error, EILSEQ, OPERATION_FIND_TARGET, injection->request->target,
                           "a symbolic link leads to a path that is no UTF-8, which no record can hold");
        return error_where(error, injection->container->name);
}

/* The target was found. known: the record of this call's id, of a mount in this container; or NULL. */
static int look_there(struct injection *injection, struct mount_record *known, struct error *error)
{
        struct mount_record *record = &injection->record;
        int r;

        (void)text_copy(record->mount_point, sizeof record->mount_point, injection->target.path);
        if ((r = check_recordable(injection, error)) < 0)
                return r;
        /* that call was killed, or the container unmounted its mount */
        if (known != NULL && strcmp(known->mount_point, record->mount_point) == 0 && known->made > 0) {
                injection->made_before = known->made;
                injection->has_earlier = true;
                injection->earlier = *known; /* restored if this call fails: it says which directories were created */
        }
        if (injection->target.mount_root) {
                /* do not overwrite a record of this id whose mount is elsewhere, or covered here */
                if (known != NULL && !mount_identity_same(&injection->target.mount, &known->identity) &&
                    !mount_identity_same(&injection->target.mount, &known->replaces) &&
                    (r = replacement_check_earlier(injection, known, error)) < 0)
                        return r;
                return look_at_mount(injection, known, error);
        }
        if (injection->target.missing > 0 && !injection->request->mkdir)
                return container_fail(injection->container, ENOENT, OPERATION_FIND_TARGET, injection->request->target,
                                      error);
        return known != NULL ? replacement_check_earlier(injection, known, error) : 0;
}

/* 1: what a killed call had left is finished; look again. */
static int look_once(struct injection *injection, struct error *error)
{
        const struct request *request = injection->request;
        struct mount_record *record = &injection->record;
        static struct mount_record earlier;
        bool known;
        int r;

        if (injection->session->state.dir_fd >= 0 && !request->dry_run &&
            (r = replacement_settle_pending(injection, record->id, error)) < 0)
                return r;
        if ((r = read_earlier(injection, &earlier, &known, error)) < 0)
                return r;
        if (known && earlier.volume[0] != '\0' && strcmp(earlier.volume, record->volume) != 0 &&
            !(request->replace && injection->kind->switches))
                return replacement_refuse_volume(injection, &earlier, error);
        if ((r = find_target(injection, error)) < 0 ||
            (r = finish_killed(injection, known ? &earlier : NULL, error)) != 0)
                return r;
        return look_there(injection, known ? &earlier : NULL, error);
}

int look_at_target(struct injection *injection, struct error *error)
{
        struct mount_record *record = &injection->record;
        int r;

        do {
                injection->replacing = false; /* a batch runs this step twice */
                injection->made_before = 0;
                injection->has_earlier = false;
                record->replaces = (struct mount_identity){};
                record->replaces_raw = 0;
                record->replaces_uses[0] = '\0';
                record->digest = injection_digest(injection);
                r = look_once(injection, error);
        } while (r > 0);
        return r;
}
