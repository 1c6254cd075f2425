/* SPDX-License-Identifier: Apache-2.0 */
#include "provision/call.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/text.h"
#include "mount/identity.h"
#include "pool/pool_kind.h"
#include "pool/record.h"
#include "process/log.h"
#include "process/proc.h"
#include "provision/cdi.h"
#include "provision/disk_uses.h"
#include "provision/reply_object.h"
#include "state/use_index.h"
#include "state/uses.h"
#include "state/volume_record.h"

/*
 * The index has the pods and the containers of this node that have a directory on a share, by the volume's name; what
 * earlier versions mounted, the volume's own record has alone. Those of other nodes cannot be asked.
 */
static int check_unpublished(const struct provision_call *call, const char *name, struct error *error)
{
        cleanup_volume_record struct volume_record volume = {};
        char keys[USE_KEYS_SIZE] = "";
        int r;

        use_keys_add_named(keys, name);
        r = uses_check_none(call->config.state_dir, keys, /* except= */ NULL, "look for users", name, error);
        if (r < 0)
                return r;
        r = volume_record_peek(call->config.state_dir, name, /* driver= */ "", &volume, error);

        for (size_t i = 0; r == 0 && i < volume.published_count; i++) {
                const struct mount_dir *place = &volume.published[i];
                struct mount_seen seen;

                if ((mount_see(AT_FDCWD, place->dir, &seen) == 0 && volume_record_dir_shows(place, &seen)) ||
                    (volume_record_is_of_this_boot(&volume) && volume_record_dir_has(place) != 0))
                        return fail_because(error, EBUSY, "look for users", name, "it is mounted on %.1000s",
                                            place->dir);
        }
        return r == -ENOENT ? 0 : r;
}

/*
 * In a directory only its name marks a disk. One that volume-create did not finish is blank, if it is no copy: what is
 * not was made by another program since.
 */
static int is_of_another(const struct provision_call *call, const struct provision_record *record, struct error *error)
{
        int r;

        if (call->pool.path[0] == '\0' || record->lifecycle != PROVISION_CREATING || record->adopted ||
            record->copy_of[0] != '\0' || record->snapshot_of[0] != '\0')
                return 0;
        r = call->kind->is_blank(&call->config, &call->pool, record->id, error);
        return r < 0 ? r : r == 0;
}

/* Who asks volume-delete for "retain" gives a volume up, wherever it is. */
static bool is_given_up(const struct provision_call *call)
{
        const struct provision_request *request = call->request;

        return request != NULL && request->verb == PROVISION_DELETE && request->reclaim_policy != NULL &&
               strcmp(request->reclaim_policy, "retain") == 0;
}

/*
 * A volume that its pool does not have may be forgotten: what was attached has no user either, and the pool is where it
 * was, or the volume is given up. 1: it is not where the pool was, and given up; 0.
 */
static int check_gone(const struct provision_call *call, const struct provision_record *record, struct error *error)
{
        int r = call->within ? 0 : owners_check_detached(call, record, error);

        if (r == 0)
                r = provision_call_check_location(call, &call->pool, record, error);
        return r == -ENODEV && is_given_up(call) ? 1 : r;
}

/* 1: the volume is there, perhaps in part, and not in use. 0: it is gone, and something else may have its id. */
static int find_unused(const struct provision_call *call, const struct provision_record *record, struct error *error)
{
        struct pool_item item;
        int other = 0;
        int gone = 0;
        /* before the server, which may not answer, and again after it, which may take long */
        int r = call->kind->remote ? check_unpublished(call, record->name, error) : 0;

        if (r < 0)
                return r;
        r = call->kind->look(&call->config, &call->pool, record->id, &item, error);
        if (r == 0 && (other = provision_call_is_volume(record, &item) ? is_of_another(call, record, error) : 1) < 0)
                return other;
        if (r < 0 && r != -ENOENT)
                return r;
        if ((other > 0 || r == -ENOENT) && (gone = check_gone(call, record, error)) < 0)
                return gone;
        if (other > 0) {
                log_say("%s of pool %s is kept: it is not volume %s any more", record->id, record->pool, record->name);
                return 0;
        }
        if (gone > 0) {
                log_say("volume %s is given up, and kept where pool %s was: %s", record->name, record->pool,
                        record->location);
                return 0;
        }
        if ((r = owners_check_unused(call, &call->pool, record->id, error)) < 0 ||
            (call->kind->check_removable != NULL &&
             (r = call->kind->check_removable(&call->config, &call->pool, record->id, error)) < 0) ||
            (call->kind->no_device && (r = check_unpublished(call, record->name, error)) < 0))
                return r;
        return 1;
}

/* A volume whose restore was killed has no other content than that of its snapshot. */
static int check_not_needed(const struct provision_call *call, const struct provision_record *record,
                            struct error *error)
{
        cleanup_provision_record struct provision_record volume = {};
        int r = record->snapshot_of[0] != '\0'
                        ? provision_record_read(&call->state, record->snapshot_of, &volume, error)
                        : -ENOENT;

        if (r < 0)
                return r == -ENOENT ? 0 : r;
        if (!pool_kind_is_torn(&volume) || strcmp(volume.restoring, record->name) != 0)
                return 0;
        return fail_because(error, EBUSY, "delete volume", record->name,
                            "restoring it to \"%.200s\" was interrupted: repeat that, or run volume-reconcile",
                            volume.name);
}

/* What waits since a call was killed that shared the content of another with this one. */
static int resume_source(const struct provision_call *call, const struct provision_record *record, struct error *error)
{
        const char *name = record->snapshot_of[0] != '\0' ? record->snapshot_of : record->copy_of;
        const bool parts = record->lifecycle == PROVISION_DELETING && record->snapshot_of[0] != '\0';
        cleanup_provision_record struct provision_record source = {};
        int r = (record->lifecycle == PROVISION_CREATING || parts) && name[0] != '\0' && call->kind->resume != NULL
                        ? provision_record_read(&call->state, name, &source, error)
                        : -ENOENT;

        if (r < 0)
                return r == -ENOENT ? 0 : r;
        if (strcmp(source.pool, record->pool) != 0) /* copy_across() lets nothing wait */
                return 0;
        return call->kind->resume(&call->config, &call->pool, source.id, record->id, error);
}

/* Only what is unmarked is asked for. */
static int keep_released(struct provision_call *call, const struct provision_record *record, struct error *error)
{
        return call->kind->no_device ? 0 : released_disks_add(&call->state, record->identity, error);
}

/* When the record is gone, what is kept still tells whose it is. */
static int keep_namespace(const struct provision_call *call, const struct provision_record *record, struct error *error)
{
        return record->namespace[0] == '\0' || call->kind->keep_namespace == NULL
                       ? 0
                       : call->kind->keep_namespace(&call->config, &call->pool, record->id, record->namespace, error);
}

/* What a restore that was killed has left beside the volume; the volume's own content is not touched. */
static int end_restore(const struct provision_call *call, const struct provision_record *record, struct error *error)
{
        return record->restoring[0] == '\0' || call->kind->unrestore == NULL
                       ? 0
                       : call->kind->unrestore(&call->config, &call->pool, record->id, error);
}

/* Kept as it is, half of it would be taken for the whole. */
static int check_keepable(const struct provision_record *record, struct error *error)
{
        return record->lifecycle == PROVISION_DELETING || !pool_kind_is_torn(record) ||
                               strcmp(record->reclaim_policy, "delete") == 0
                       ? 0
                       : fail_because(
                                 error, EBUSY, "delete volume", record->name,
                                 "restoring \"%.200s\" to it was interrupted, and it is to be kept: repeat that, or "
                                 "run volume-reconcile, first",
                                 record->restoring);
}

/* What delete_check_soon() allows yet, of all volumes of this program together. */
static uint64_t soon_bytes = DELETE_SOON_MAX_BYTES;

/* It is overwritten now. */
static void spend(const struct provision_call *call, const struct provision_record *record)
{
        if (!call->kind->no_device)
                soon_bytes -= record->size_bytes < soon_bytes ? record->size_bytes : soon_bytes;
}

/*
 * With the locks of name and pool; the pool's is released while the volume is overwritten, which may take hours.
 * ret_changed: its content is not what it was.
 */
static int give_back(struct provision_call *call, const struct provision_record *record, bool erase, bool begun,
                     bool *ret_changed, struct error *error)
{
        int r = end_restore(call, record, error);

        if (r < 0)
                return r;
        if (strcmp(record->reclaim_policy, "retain") == 0)
                return keep_released(call, record, error);
        if (strcmp(record->reclaim_policy, "recycle") == 0) {
                spend(call, record);
                provision_call_unlock_pool(call);
                r = call->kind->wipe(&call->config, &call->pool, record->id, error);
                return r < 0 ? r : keep_released(call, record, error);
        }
        if (erase && call->kind->erase != NULL) {
                spend(call, record);
                provision_call_unlock_pool(call);
                if ((r = call->kind->erase(&call->config, &call->pool, record->id, begun, error)) < 0)
                        return r;
                *ret_changed = true;
                if ((r = provision_call_lock_pool(call, error)) < 0 || (r = find_unused(call, record, error)) <= 0)
                        return r;
        }
        return call->kind->remove(&call->config, &call->pool, record->id, error);
}

/* Whether the next user of its room could read something of it: one that was never finished is blank, if it is no copy. */
static bool has_content(const struct provision_record *record, enum provision_lifecycle was)
{
        return was != PROVISION_CREATING || record->copy_of[0] != '\0' || record->snapshot_of[0] != '\0';
}

/* Another node may have finished what a call here began. Only who deletes the volume means that, too. */
static bool was_finished_elsewhere(const struct provision_call *call, const struct provision_record *record)
{
        return call->request != NULL && call->request->verb == PROVISION_DELETE &&
               pool_kind_is_one_everywhere(call->kind, record);
}

/*
 * ENOENT may be of a device's name in /dev, which a slow udev has not made yet: only what its pool does not have is gone.
 * What it has stays, with its record, and EAGAIN says that the call can be repeated.
 */
static int check_no_more(const struct provision_call *call, const struct provision_record *record, struct error *error)
{
        struct error ignored;
        struct pool_item item;
        int r = call->kind->look(&call->config, &call->pool, record->id, &item, &ignored);

        if (r == -ENOENT || (r == 0 && !provision_call_is_volume(record, &item)))
                return 0;
        error->errnum = EAGAIN;
        return -EAGAIN;
}

/* Delete, or end what an earlier call started. With the locks of name and pool. asked: a policy instead of the
 * volume's, or NULL. */
int delete_finish(struct provision_call *call, struct provision_record *record, const char *asked, struct error *error)
{
        const enum provision_lifecycle was = record->lifecycle;
        char policy[sizeof record->reclaim_policy];
        bool changed = false;
        int r;

        if ((r = resume_source(call, record, error)) < 0 || (r = check_not_needed(call, record, error)) < 0 ||
            (r = find_unused(call, record, error)) < 0)
                return r;
        cdi_begin_change(&call->config, &call->state, record->name);
        if (r == 0)
                return provision_record_remove(&call->state, record->name, record->id, error);
        (void)text_copy(policy, sizeof policy, record->reclaim_policy);
        if (was == PROVISION_CREATING && !record->adopted && !was_finished_elsewhere(call, record))
                asked = "delete"; /* a volume that was never finished, here or elsewhere, is not kept */
        if (asked != NULL)
                (void)text_copy(record->reclaim_policy, sizeof record->reclaim_policy, asked);
        if ((r = check_keepable(record, error)) < 0)
                return r;
        if (strcmp(record->reclaim_policy, "retain") == 0 && (r = keep_namespace(call, record, error)) < 0)
                return r; /* before anything is changed */
        record->lifecycle = PROVISION_DELETING;
        r = provision_record_write(&call->state, record, FILE_DURABLE, error);
        /* on a full disk deleting makes room; killed now, the record would outlive its disk, and be deleted next
         * time */
        if (r < 0 && !((r == -ENOSPC || r == -EDQUOT) && strcmp(record->reclaim_policy, "delete") == 0))
                return r;
        r = give_back(call, record,
                      (has_content(record, was) || was_finished_elsewhere(call, record)) &&
                              (!record->keeps_content || call->kind->no_device),
                      was == PROVISION_DELETING, &changed, error);
        if ((r == -EBUSY || r == -ENODEV) && was == PROVISION_CREATED && !changed) {
                struct error ignored; /* the first failure is the one to report */

                record->lifecycle = was; /* nothing was changed, and it stays usable */
                (void)text_copy(record->reclaim_policy, sizeof record->reclaim_policy, policy);
                (void)provision_record_write(&call->state, record, FILE_DURABLE, &ignored);
        }
        if (r == -ENOENT)
                r = check_no_more(call, record, error);
        if (r < 0)
                return r;
        log_say("deleted volume %s of pool %s (%s)", record->name, record->pool, record->reclaim_policy);
        return provision_record_remove(&call->state, record->name, record->id, error);
}

/* As soon as nobody looks at its device any more. */
static int finish_soon(struct provision_call *call, struct provision_record *record, const char *asked,
                       struct error *error)
{
        unsigned tries = 0;
        int again = 0;
        int r;

        do
                r = delete_finish(call, record, asked, error);
        while (r == -EBUSY && (again = owners_wait_looked_at(call, record->id, &tries, error)) > 0);
        return again < 0 ? again : r;
}

/*
 * A call was killed, with all its processes, while it took this snapshot: the record is what tells that the volume's
 * filesystem may be frozen.
 */
int delete_check_thawed(const struct provision_call *call, const struct provision_record *record, struct error *error)
{
        if (call->kind->share != NULL || record->lifecycle != PROVISION_CREATING || record->snapshot_of[0] == '\0')
                return 0;
        return fail_because(error, EBUSY, "delete volume", record->name,
                            "taking this snapshot of \"%.200s\" was interrupted, which may be frozen: repeat "
                            "volume-snapshot, or run volume-reconcile",
                            record->snapshot_of);
}

/* Looked at by its own pool: by another one of the share the server may give another handle. 1: it is; 0: it is not. */
static int is_there(const struct provision_call *call, const struct provision_record *record, struct error *error)
{
        static struct pool pool;
        struct error ignored;
        struct pool_item item;
        int r;

        if (pool_find(&call->config, record->pool, &pool, &ignored) < 0 || pool.kind == NULL)
                return 1; /* who knows */
        r = pool.kind->look(&call->config, &pool, record->id, &item, error);
        if (r == 0 && provision_call_is_volume(record, &item))
                return 1;
        return r < 0 && r != -ENOENT ? r : provision_call_check_location(call, &pool, record, error);
}

int delete_record_left(struct provision_call *call, const char *name, const char *id, struct error *error)
{
        cleanup_provision_record struct provision_record left = {};
        int r;

        if (!state_try_lock(&call->state, volume_record_key(name)))
                return fail_because(error, EAGAIN, "forget volume", name,
                                    "another call works on the volume \"%.200s\", which had %s; repeat this one", name,
                                    id);
        provision_record_forget_read();
        if ((r = provision_record_read(&call->state, name, &left, error)) < 0)
                return r == -ENOENT ? 0 : r;
        if ((r = is_there(call, &left, error)) > 0)
                return fail_because(error, EBUSY, "forget volume", name, "%s is the volume \"%.200s\"", id, name);
        if (r < 0 || (r = check_unpublished(call, name, error)) < 0)
                return r;
        log_say("%s of pool %s is not volume %s any more, which is forgotten", id, left.pool, name);
        return provision_record_remove(&call->state, name, id, error);
}

int delete_check_soon(const struct provision_call *call, const struct provision_record *record, struct error *error)
{
        const bool recycles = strcmp(record->reclaim_policy, "recycle") == 0;

        if (!has_content(record, record->lifecycle) || (record->keeps_content && !recycles) ||
            call->kind->erase == NULL || call->kind->no_device || strcmp(record->reclaim_policy, "retain") == 0)
                return 0;
        if (record->size_bytes <= soon_bytes)
                return 0;
        if (call->kind->is_erased != NULL && !recycles) {
                int r = call->kind->is_erased(&call->config, &call->pool, record->id, error);

                if (r != 0)
                        return r < 0 ? r : 0;
        }
        return fail_because(error, EBUSY, "delete volume", record->name,
                            "%llu bytes are not overwritten yet; run volume-delete to finish",
                            (unsigned long long)record->size_bytes);
}

static int answer_absent(struct provision_call *call)
{
        call->reply = provision_object_done(PROVISION_DELETE, &(struct provision_done){ .name = call->request->name });
        return 0;
}

static int delete_found(struct provision_call *call, struct provision_record *record, struct error *error)
{
        const struct provision_request *request = call->request;
        int r;

        if ((r = provision_call_use_pool_of(call, record, error)) < 0 ||
            (request->soon && (r = delete_check_soon(call, record, error)) < 0) ||
            (r = delete_check_thawed(call, record, error)) < 0 || (r = provision_call_lock_pool(call, error)) < 0)
                return r;
        return finish_soon(call, record, request->reclaim_policy, error);
}

/* Its pool is gone, perhaps for good: of a volume that is given up the record is removed alone. failure: what else it comes to. */
static int give_up(struct provision_call *call, struct provision_record *record, int failure, struct error *error)
{
        int r;

        if (!is_given_up(call) || (failure != -ENODEV && (failure != -ENOENT || call->kind != NULL)))
                return failure;
        if ((r = owners_check_detached(call, record, error)) < 0 ||
            (r = check_unpublished(call, record->name, error)) < 0)
                return r;
        log_say("volume %s is given up: its pool %s is not there", record->name, record->pool);
        cdi_begin_change(&call->config, &call->state, record->name);
        (void)text_copy(record->reclaim_policy, sizeof record->reclaim_policy, "retain");
        return provision_record_remove(&call->state, record->name, record->id, error);
}

int delete_volume(struct provision_call *call, struct error *error)
{
        const struct provision_request *request = call->request;
        cleanup_provision_record struct provision_record record = {};
        int r = provision_record_read(&call->state, request->name, &record, error);

        if (r == 0 && request->only != NULL &&
            (strcmp(request->only, "snapshot") == 0) != (record.snapshot_of[0] != '\0'))
                return answer_absent(call);
        if (r == -ENOENT) {
                if ((r = provision_record_remove(&call->state, request->name, /* id= */ NULL, error)) <
                    0) /* a temporary file may be there */
                        return r;
                return answer_absent(call);
        }
        if (r < 0)
                return r;
        if ((r = delete_found(call, &record, error)) < 0 && (r = give_up(call, &record, r, error)) < 0)
                return r;
        call->reply = provision_object_done(PROVISION_DELETE,
                                            &(struct provision_done){ .name = request->name,
                                                                      .existed = true,
                                                                      .pool = record.pool,
                                                                      .reclaim_policy = record.reclaim_policy });
        return 0;
}
