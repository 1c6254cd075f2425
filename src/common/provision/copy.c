/* SPDX-License-Identifier: Apache-2.0 */
/* copy.c - snapshots, and volumes that are copies of others. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/interrupt.h"
#include "base/json.h"
#include "base/text.h"
#include "pool/pool_kind.h"
#include "pool/record.h"
#include "process/log.h"
#include "provision/call.h"
#include "provision/provision.h"
#include "provision/reply_object.h"
#include "state/volume_record.h"

#define SHARING_SECONDS 30U
#define COPYING_SECONDS 3600U

/* A batch of mounts has several such locks in an order of its own: none is waited for with the other one held. */
int copy_lock(struct provision_call *call, const char *one, const char *other, struct error *error)
{
        for (;;) {
                int r = provision_record_lock(&call->state, one, error);

                if (r < 0 || state_try_lock(&call->state, volume_record_key(other)))
                        return r;
                state_unlock(&call->state, volume_record_key(one));
                if ((r = provision_record_lock(&call->state, other, error)) < 0)
                        return r;
                state_unlock(&call->state, volume_record_key(other));
        }
}

static int fail_absent(const char *name, struct error *error)
{
        return fail_because(error, ENOENT, "find volume", name,
                            "there is no volume or snapshot \"%.200s\"; volume-list shows them", name);
}

/*
 * What is copied from: whole, in its pool, which is the call's from now on, and one that has copies. Its size is that
 * which it has: a call that grew it may have been killed before its record said so, or it was grown by hand.
 */
static int find_source(struct provision_call *call, const char *name, struct provision_record *ret_source,
                       struct error *error)
{
        struct pool_item item;
        int r = provision_record_read(&call->state, name, ret_source, error);

        if (r < 0)
                return r == -ENOENT ? fail_absent(name, error) : r;
        if (ret_source->lifecycle != PROVISION_CREATED)
                return fail_because(error, EBUSY, "copy volume", name,
                                    "its creation or deletion has not finished; repeat that call first");
        if ((r = provision_call_use_pool_of(call, ret_source, error)) < 0)
                return r;
        if (call->kind->copy == NULL)
                return fail_because(
                        error, EOPNOTSUPP, "copy volume", name,
                        "pools of type %s have no snapshots and no copies yet, only those of type loop and lvm",
                        call->kind->type);
        if ((r = provision_call_lock_pool(call, error)) < 0)
                return r;
        if (pool_kind_is_torn(ret_source) && (r = restore_unrestore(call, ret_source, error)) < 0)
                return r;
        if ((r = provision_call_look_again(call, ret_source, &item, error)) == 0 &&
            item.size_bytes > ret_source->size_bytes)
                ret_source->size_bytes = item.size_bytes;
        return r;
}

static bool is_elsewhere(const struct provision_call *call, const struct provision_record *source)
{
        return strcmp(call->pool.name, source->pool) != 0;
}

/* Those of the source, in another pool only what every pool has; and what the kind of its pool says of copies. */
static json_t *copy_parameters(const struct provision_call *call, const struct provision_record *source)
{
        cleanup_json json_t *parameters = is_elsewhere(call, source) ? pool_kind_common_parameters(source->parameters)
                                                                     : json_copy(source->parameters);

        for (const char *const *pair = call->kind->copy_parameters; pair != NULL && *pair != NULL; pair += 2)
                if (json_object_set_new(parameters, pair[0], json_string(pair[1])) < 0)
                        return NULL;
        return json_incref(parameters);
}

/* A record for a copy. */
static int begin_copy(struct provision_call *call, const struct provision_record *source, const char *name,
                      struct provision_record *ret_record, struct error *error)
{
        *ret_record = *source;
        ret_record->parameters = copy_parameters(call, source);
        ret_record->mount_flags = json_incref(source->mount_flags);
        if (ret_record->parameters == NULL)
                return fail(error, ENOMEM, "copy volume", name);
        (void)text_copy(ret_record->name, sizeof ret_record->name, name); /* it fits: request.c */
        if (is_elsewhere(call, source)) {
                (void)text_copy(ret_record->pool, sizeof ret_record->pool, call->pool.name);
                (void)text_copy(ret_record->pool_type, sizeof ret_record->pool_type, call->kind->type);
                ret_record->profile[0] = '\0'; /* which says how the other one lies in its pool */
        }
        pool_put_location(&call->config, &call->pool, ret_record->location);
        (void)text_copy(ret_record->reclaim_policy, sizeof ret_record->reclaim_policy,
                        call->request->reclaim_policy ?: "delete");
        (void)text_copy(ret_record->target, sizeof ret_record->target, call->request->target ?: "");
        if (call->request->namespace != NULL) /* else it stays that of the source, whose content it has */
                (void)text_copy(ret_record->namespace, sizeof ret_record->namespace, call->request->namespace);
        ret_record->driver[0] = '\0';
        ret_record->identity[0] = '\0';
        ret_record->snapshot_of[0] = '\0';
        ret_record->copy_of[0] = '\0';
        ret_record->restoring[0] = '\0';
        ret_record->taken = 0;
        ret_record->source_born = 0;
        ret_record->born = clock_real_ns();
        ret_record->adopted = false;
        ret_record->lifecycle = PROVISION_CREATING;
        return 0;
}

/* Before anything is made. Returns whether blocks are shared: 1 or 0. */
static int choose_way(const struct provision_call *call, const struct provision_record *source,
                      const struct provision_still *still, struct error *error)
{
        int r = call->kind->can_share(&call->config, &call->pool, source->id, /* snapshot= */ still != NULL, error);

        if (r != 0 || still == NULL)
                return r;
        if (still->busy)
                return fail_because(error, EBUSY, "copy volume", source->name,
                                    "its device is in use, and the filesystem of pool \"%.128s\" cannot share blocks, "
                                    "so that all of it would be copied while others write to it; end that first",
                                    source->pool);
        if (!still->mounted || call->request->freeze)
                return r;
        return fail_because(error, EBUSY, "copy volume", source->name,
                            "the volume is mounted, and the filesystem of pool \"%.128s\" cannot share blocks, so "
                            "that all of it would be copied while no process can write to it; unmount it, or set "
                            "\"freeze\" (with CSI in the VolumeSnapshotClass)",
                            source->pool);
}

/* The pool's lock is given back: the image has all of its size, and counts. */
static int fill(struct provision_call *call, const struct provision_record *source, const struct pool *from,
                struct provision_record *record, bool shares, const struct provision_still *still, struct error *error)
{
        struct error ended;
        int r;

        if (still != NULL && (r = still->begin(still->argument, shares ? SHARING_SECONDS : COPYING_SECONDS, error)) < 0)
                return r;
        r = from != NULL ? copy_across(call, from, source->id, record, error)
                         : call->kind->copy(&call->config, &call->pool, source->id, record->id, shares, error);
        if (still != NULL && still->end(still->argument, r < 0 ? &ended : error) < 0 && r == 0)
                r = error_negative(error->errnum);
        if (r < 0 || call->kind->sync == NULL)
                return r;
        return call->kind->sync(&call->config, &call->pool, record->id, error);
}

/* With the pool's lock, and the record as it will be. from: the source's pool, if that is another; or NULL. */
static int make_copy(struct provision_call *call, const struct provision_record *source, const struct pool *from,
                     uint64_t size_bytes, const struct provision_still *still, struct provision_record *record,
                     struct error *error)
{
        struct pool_item item;
        bool shares;
        int r = from != NULL ? 0 : choose_way(call, source, still, error);

        if (r < 0)
                return r;
        shares = r > 0;
        if ((r = create_claim(call, size_bytes, record, error)) < 0)
                return r;
        record->grows = source->grows || record->size_bytes > source->size_bytes;
        if ((r = provision_record_write(&call->state, record, FILE_DURABLE, error)) < 0)
                return r;
        if (shares && call->kind->share != NULL)
                r = call->kind->share(&call->config, &call->pool, source->id, record, error);
        else
                r = call->kind->create(&call->config, &call->pool, record, &item, error);
        if (r == -EEXIST)
                return create_forget(call, record, r);
        if (r == 0 && (!shares || call->kind->share == NULL)) {
                provision_call_unlock_pool(call);
                r = fill(call, source, from, record, shares, still, error);
        }
        if (r == 0)
                r = provision_call_look_again(call, record, &item, error);
        if (r == 0) {
                (void)text_copy(record->identity, sizeof record->identity, item.identity); /* as long */
                record->lifecycle = PROVISION_CREATED;
                r = provision_record_write(&call->state, record, FILE_DURABLE, error);
        }
        if (r < 0) {
                struct error ignored;

                /* lvm may have been killed: without the record nobody would have the source go on. What it got of the source
                 * by then is overwritten, as when it is deleted; where that fails the record stays, and tells of it */
                record->lifecycle = PROVISION_CREATING;
                interrupt_forget();
                if (provision_call_lock_pool(call, &ignored) == 0)
                        (void)delete_finish(call, record, /* asked= */ NULL, &ignored);
                return r;
        }
        log_say("made %s, of %llu bytes, of %s in pool %s, %s", record->name, (unsigned long long)record->size_bytes,
                source->name, record->pool, shares ? "sharing its blocks" : "by copying");
        return 0;
}

/*
 * The copy is for another pool than the source's: that is the call's from now on, with its lock. The source is kept by the
 * lock of its name.
 */
static int leave_pool(struct provision_call *call, struct pool *ret_from, struct error *error)
{
        int r;

        *ret_from = call->pool;
        if ((r = provision_call_use_pool(call, call->request->pool, error)) < 0)
                return r;
        if (ret_from->kind->open_content == NULL || call->kind->open_content == NULL)
                return fail_because(error, EOPNOTSUPP, "copy volume", call->request->from,
                                    "it is in pool \"%.128s\" of type %s, and pool \"%.128s\" of type %s has no copies "
                                    "of such: make a volume there without \"from\", mount both, and copy the files",
                                    ret_from->name, ret_from->kind->type, call->pool.name, call->kind->type);
        return provision_call_lock_pool(call, error);
}

/* What its maker asked for, before it was rounded: who asks for that again gets all that it has. */
static uint64_t least_bytes(const struct provision_record *source)
{
        return source->asked_bytes != 0 && source->asked_bytes < source->size_bytes ? source->asked_bytes
                                                                                    : source->size_bytes;
}

int copy_volume(struct provision_call *call, struct provision_record *ret_record, struct error *error)
{
        static struct pool from;
        const struct provision_request *request = call->request;
        cleanup_provision_record struct provision_record source = {};
        uint64_t size_bytes = request->size_bytes;
        bool elsewhere;
        int r = find_source(call, request->from, &source, error);

        if (r < 0)
                return r;
        elsewhere = request->pool != NULL && strcmp(request->pool, source.pool) != 0;
        if (size_bytes != 0 && size_bytes < least_bytes(&source))
                return fail_because(
                        error, ERANGE, "copy volume", request->from,
                        "it has %llu bytes, at least %llu of which a copy needs, and the request is for %llu",
                        (unsigned long long)source.size_bytes, (unsigned long long)least_bytes(&source),
                        (unsigned long long)size_bytes);
        r = owners_await_unused(call, source.id, error);
        if (r < 0)
                return r != -EBUSY ? r
                                   : fail_because(error, EBUSY, "copy volume", request->from,
                                                  "it is in use; take a snapshot with volume-snapshot, and copy that");
        if ((elsewhere && (r = leave_pool(call, &from, error)) < 0) ||
            (r = begin_copy(call, &source, request->name, ret_record, error)) < 0)
                return r;
        (void)text_copy(ret_record->copy_of, sizeof ret_record->copy_of, request->from); /* as long */
        ret_record->asked_bytes = size_bytes != 0 ? size_bytes : least_bytes(&source);
        if (request->keeps_content || request->erases)
                ret_record->keeps_content = request->keeps_content;
        return make_copy(call, &source, elsewhere ? &from : NULL,
                         size_bytes > source.size_bytes ? size_bytes : source.size_bytes, /* still= */ NULL, ret_record,
                         error);
}

static json_t *object_of(struct provision_call *call, const struct provision_record *record)
{
        struct pool_item item = {};
        struct error ignored;

        (void)call->kind->look(&call->config, &call->pool, record->id, &item, &ignored);
        return provision_object_volume(record, item.path);
}

static int answer_taken(struct provision_call *call, const struct provision_record *record, bool existed)
{
        call->reply = provision_object_done(
                PROVISION_SNAPSHOT, &(struct provision_done){ .volume = object_of(call, record), .existed = existed });
        return 0;
}

#define ROUNDED_NS 1000000 /* none is deleted and made anew within that, and what rewrites JSON may keep only 53 bits */

/* A volume may have the name of an earlier one, whose snapshots are still there. */
static bool is_of_earlier(const struct provision_record *snapshot, const struct provision_record *volume)
{
        const uint64_t then = snapshot->source_born;
        const uint64_t now = volume->born;

        return then != 0 && now != 0 && (then > now ? then - now : now - then) > ROUNDED_NS;
}

static int check_not_of_earlier(const struct provision_call *call, const struct provision_record *snapshot,
                                struct error *error)
{
        cleanup_provision_record struct provision_record volume = {};
        int r = provision_record_read(&call->state, snapshot->snapshot_of, &volume, error);

        if (r < 0)
                return r == -ENOENT ? 0 : r;
        return !is_of_earlier(snapshot, &volume)
                       ? 0
                       : fail_because(
                                 error, EEXIST, "take snapshot", snapshot->name,
                                 "it is a snapshot of an earlier volume \"%.200s\": choose another name, or delete it",
                                 volume.name);
}

/* Returns 1: it is there already; 0: it has to be taken, and nothing is in its place. */
static int find_taken(struct provision_call *call, const struct provision_still *still,
                      struct provision_record *ret_record, struct error *error)
{
        const struct provision_request *request = call->request;
        int r = provision_record_read(&call->state, request->snapshot, ret_record, error);

        if (r < 0)
                return r == -ENOENT ? 0 : r;
        if ((r = provision_call_use_pool_of(call, ret_record, error)) < 0)
                return r;
        if (strcmp(ret_record->snapshot_of, request->name) != 0)
                return fail_because(error, EEXIST, "take snapshot", request->snapshot,
                                    "something else has the name \"%.200s\": %s%.200s", request->snapshot,
                                    ret_record->snapshot_of[0] != '\0' ? "a snapshot of " : "a volume",
                                    ret_record->snapshot_of);
        if (ret_record->lifecycle == PROVISION_CREATED)
                return (r = check_not_of_earlier(call, ret_record, error)) < 0 ? r : 1;
        /* a call was killed while it took it: what it has may be of any moment */
        if ((r = still->end_killed(still->argument, error)) < 0 || (r = provision_call_lock_pool(call, error)) < 0)
                return r;
        return delete_finish(call, ret_record, /* asked= */ NULL, error);
}

static int take(struct provision_call *call, const struct provision_still *still, struct error *error)
{
        const struct provision_request *request = call->request;
        cleanup_provision_record struct provision_record source = {};
        cleanup_provision_record struct provision_record record = {};
        int r = find_taken(call, still, &record, error);

        if (r != 0)
                return r < 0 ? r : answer_taken(call, &record, /* existed= */ true);
        provision_record_release(&record);
        if ((r = find_source(call, request->name, &source, error)) < 0)
                return r;
        /* the image of one that is not attached may still be in use: a device that is about to end, another program */
        if (!still->attached && call->kind->share == NULL && (r = owners_await_unused(call, source.id, error)) < 0)
                return r;
        if (source.snapshot_of[0] != '\0')
                return fail_because(error, EINVAL, "take snapshot", request->name, "it is a snapshot itself");
        if ((r = begin_copy(call, &source, request->snapshot, &record, error)) < 0)
                return r;
        (void)text_copy(record.snapshot_of, sizeof record.snapshot_of, request->name); /* as long */
        record.taken = clock_seconds();
        record.source_born = source.born;
        record.asked_bytes = least_bytes(&source);
        if ((r = make_copy(call, &source, /* from= */ NULL, source.size_bytes, still, &record, error)) < 0)
                return r;
        return answer_taken(call, &record, /* existed= */ false);
}

static int restore(struct provision_call *call, struct error *error)
{
        const struct provision_request *request = call->request;
        cleanup_provision_record struct provision_record volume = {};
        cleanup_provision_record struct provision_record snapshot = {};
        int shares;
        int r;

        if ((r = find_source(call, request->name, &volume, error)) < 0)
                return r;
        if (volume.restoring[0] != '\0' && (r = restore_unrestore(call, &volume, error)) < 0)
                return r;
        if ((r = find_source(call, request->restore, &snapshot, error)) < 0)
                return r;
        if (strcmp(snapshot.snapshot_of, request->name) != 0 || strcmp(snapshot.pool, volume.pool) != 0)
                return fail_because(
                        error, EINVAL, "restore snapshot", request->restore,
                        "it is no snapshot of %.200s; to make a volume of it, use volume-create and \"from\"",
                        request->name);
        if (is_of_earlier(&snapshot, &volume))
                return fail_because(error, EINVAL, "restore snapshot", request->restore,
                                    "it is a snapshot of an earlier volume \"%.200s\"; to make a volume of it, use "
                                    "volume-create and \"from\"",
                                    request->name);
        if ((r = owners_await_unused(call, volume.id, error)) < 0 ||
            (r = shares = call->kind->can_share(&call->config, &call->pool, snapshot.id, /* snapshot= */ false,
                                                error)) < 0 ||
            (r = restore_check_room(call, &volume, &snapshot, shares > 0, error)) < 0 ||
            (r = restore_put_back(call, &volume, &snapshot, shares > 0, error)) < 0)
                return r;
        call->reply =
                provision_object_done(PROVISION_SNAPSHOT, &(struct provision_done){ .volume = object_of(call, &volume),
                                                                                    .restored = snapshot.name });
        return 0;
}

int provision_snapshot(const struct config *config, const struct provision_request *request,
                       const struct provision_still *still, json_t **ret_reply, struct error *error)
{
        static struct provision_call call;
        const char *other = request->snapshot ?: request->restore;
        int r;

        call = (struct provision_call){ .request = request, .config = *config, .state = STATE_NONE };
        if ((r = provision_record_open(config->state_dir, /* create= */ true, &call.state, error)) == 0 &&
            (r = copy_lock(&call, request->name, other, error)) == 0)
                r = request->snapshot != NULL ? take(&call, still, error) : restore(&call, error);
        provision_call_release(&call);
        *ret_reply = call.reply;
        return r;
}
