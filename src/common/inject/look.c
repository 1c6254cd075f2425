/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/look.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "inject/replacement.h"

/* A mount is exactly at the target. */
static int look_at_mount(struct injection *injection, struct mount_record *known, struct error *error)
{
        const struct request *request = injection->request;
        static struct mount_record other;
        int r;

        if (known != NULL && mount_identity_same(&injection->target.mount, &known->identity)) {
                if ((r = replacement_forget(injection, known, error)) < 0)
                        return r;
                r = replacement_accept(injection, known, error);
                if (r == 0 && known->remap_key != 0 && !request->dry_run &&
                    !mount_record_remap_lives(&injection->session->state, known->remap_key)) {
                        injection->already = false; /* it is mounted, but remap-daemon does not run */
                        return replacement_begin(injection, known, error);
                }
                return r == -EBUSY && request->replace ? replacement_begin(injection, known, error) : r;
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
                if (r != -ENOENT)
                        return r < 0 ? r : replacement_begin(injection, &other, error);
        }
        (void)fail_because(error, EBUSY, "find target", request->target, "something is mounted there already");
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

int look_at_target(struct injection *injection, struct error *error)
{
        const struct request *request = injection->request;
        struct mount_record *record = &injection->record;
        struct mount_record earlier;
        bool known;
        int r;

        injection->replacing = false; /* a batch runs this step twice */
        injection->made_before = 0;
        record->replaces = (struct mount_identity){};
        record->replaces_raw = 0;
        record->digest = injection_digest(injection);
        r = injection->session->state.dir_fd < 0
                    ? -ENOENT
                    : mount_record_read(&injection->session->state, record->id, &earlier, error);
        if (r < 0 && r != -ENOENT && r != -EBADMSG)
                return r;
        known = r == 0 && mount_record_is_of(&earlier, injection->container, record->boot_id);
        if (r == 0 && !known && strcmp(earlier.boot_id, record->boot_id) == 0) {
                /* the id is in use by another container, until that one ends */
                cleanup_container struct container alive = CONTAINER_NONE;
                struct error ignored;

                if (mount_record_reach(&earlier, record->boot_id, &alive, &ignored) == 0)
                        return fail_because(error, EEXIST, "read record", record->id,
                                            "this id names a mount in another container (pid %d)", earlier.pid);
        }
        if ((r = find_target(injection, error)) < 0)
                return r;
        if (known && injection->target.mount_root && (r = replacement_finish_swap(injection, &earlier, error)) != 0) {
                if (r < 0 || (r = find_target(injection, error)) < 0)
                        return r;
        }
        if (injection->target.mount_root && request->replace && !request->dry_run &&
            (r = replacement_finish_other(injection, error)) != 0)
                return r < 0 ? r : look_at_target(injection, error); /* nothing is left to finish */
        (void)text_copy(record->mount_point, sizeof record->mount_point, injection->target.path);
        if (injection->target.mount_root) {
                /* do not overwrite a record of this id whose mount is elsewhere, or covered here */
                if (known && !mount_identity_same(&injection->target.mount, &earlier.identity) &&
                    !mount_identity_same(&injection->target.mount, &earlier.replaces) &&
                    (r = replacement_check_earlier(injection, &earlier, error)) < 0)
                        return r;
                return look_at_mount(injection, known ? &earlier : NULL, error);
        }
        if (injection->target.missing > 0 && !request->mkdir)
                return container_fail(injection->container, ENOENT, "find target", request->target, error);
        if (known && (r = replacement_check_earlier(injection, &earlier, error)) < 0)
                return r;
        if (known && strcmp(earlier.mount_point, record->mount_point) == 0)
                injection->made_before = earlier.made; /* that call was killed, or the container unmounted its mount */
        if (injection->made_before > 0)
                injection->earlier = earlier; /* restored if this call fails: it says which directories were created */
        return 0;
}
