/* SPDX-License-Identifier: Apache-2.0 */
#include "provision/call.h"

#include <errno.h>
#include <string.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "pool/pool_kind.h"
#include "pool/record.h"
#include "process/log.h"
#include "provision/disk_uses.h"
#include "provision/profile.h"

#define MATCHES_MAX 8 /* how often another process may take a disk first */

/* That a disk is no volume and not in use. owner: the volume that it is, or NULL. */
static int check_free(const struct provision_call *call, const struct pool *pool, const char *owner, const char *id,
                      struct error *error)
{
        if (owner != NULL)
                return fail_because(error, EBUSY, "adopt", id, "it already is the volume \"%.200s\"", owner);
        return owners_check_unused(call, pool, id, error);
}

static bool is_too_large(const struct provision_call *call, const struct pool_item *item)
{
        return call->request->limit_bytes != 0 && item->size_bytes > call->request->limit_bytes;
}

/* Whether it is as large as the request says, and laid out as its profile. */
static int check_disk(const struct provision_call *call, const char *id, const struct pool_item *item,
                      struct error *error)
{
        if (item->size_bytes < call->request->size_bytes || (item->size_bytes == 0 && !call->kind->no_device))
                return fail_because(error, ERANGE, "adopt", id, "it has %llu bytes, and the request is for %llu",
                                    (unsigned long long)item->size_bytes,
                                    (unsigned long long)call->request->size_bytes);
        if (is_too_large(call, item))
                return fail_because(error, ERANGE, "adopt", id, "it has %llu bytes, and the limit is %llu",
                                    (unsigned long long)item->size_bytes,
                                    (unsigned long long)call->request->limit_bytes);
        if (call->profile != NULL && call->kind->fits != NULL &&
            !call->kind->fits(item, profile_parameters(call->profile)))
                return fail_because(error, EINVAL, "adopt", id,
                                    "its layout is \"%s\", which does not match profile \"%.200s\"", item->layout,
                                    call->request->profile);
        return 0;
}

/* Another call may have had it since, where the pool's lock was given back. */
static int check_still_blank(struct provision_call *call, const char *id, struct error *error)
{
        int r = call->request->match && call->blank_locks != call->pool_locks
                        ? call->kind->is_blank(&call->config, &call->pool, id, error)
                        : 1;

        return r != 0 ? r : fail_because(error, EBUSY, "adopt", id, "it is not blank any more");
}

/* Who adopts a volume to delete it may come after a node that was killed while it did. */
static int discard_left(struct provision_call *call, const char *id, struct error *error)
{
        const char *policy = call->request->reclaim_policy;

        if (call->kind->discard_left == NULL || policy == NULL || strcmp(policy, "delete") != 0)
                return 0;
        provision_call_unlock_pool(call); /* it may take long */
        return call->kind->discard_left(&call->config, &call->pool, id, error);
}

/* The disk, if it is there, and no other volume has it. */
static int find_free(struct provision_call *call, const char *id, struct pool_item *ret_item, struct error *error)
{
        char owner[PROVISION_NAME_MAX];
        int r = call->kind->look(&call->config, &call->pool, id, ret_item, error);

        if (r == -ENOENT && (r = discard_left(call, id, error)) == 0)
                return fail_because(error, ENOENT, "adopt", id, "there is no \"%.200s\" in pool \"%.128s\"", id,
                                    call->pool.name);
        if (r < 0 || (r = owners_look(call, call->pool.name, id, owner, error)) < 0)
                return r;
        /* the volume may be one that another node has deleted */
        if (r > 0 && call->kind->remote && (r = delete_record_left(call, owner, id, error)) == 0)
                r = owners_look(call, call->pool.name, id, owner, error);
        if (r < 0 || (r = check_free(call, &call->pool, r > 0 ? owner : NULL, id, error)) < 0)
                return r;
        return call->kind->no_device ? owners_check_apart(call, id, /* new= */ false, error) : 0;
}

static int write_record(struct provision_call *call, const char *id, const struct pool_item *item,
                        struct provision_record *record, struct error *error)
{
        struct error ignored;
        json_t *parameters;
        int r;

        (void)text_copy(record->id, sizeof record->id, id);
        (void)text_copy(record->identity, sizeof record->identity, item->identity);
        (void)text_copy(record->reclaim_policy, sizeof record->reclaim_policy,
                        call->request->reclaim_policy ?: "retain");
        record->adopted = true;
        if (call->kind->note_layout != NULL && (parameters = json_copy(record->parameters)) != NULL) {
                call->kind->note_layout(item, parameters);
                json_decref(record->parameters);
                record->parameters = parameters;
        }
        record->size_bytes = item->size_bytes;
        record->lifecycle = PROVISION_CREATED;
        if ((r = provision_record_write(&call->state, record, FILE_DURABLE, error)) < 0)
                return r;
        /* an entry that stays does no harm: the disk has an owner */
        if (released_disks_remove(&call->state, item->identity, &ignored) < 0)
                log_say("%s stays in the list of disks to choose again: %s", id, error_why(&ignored));
        return 0;
}

int adopt_disk(struct provision_call *call, const char *id, struct provision_record *ret_record, struct error *error)
{
        struct pool_item item;
        int r;

        if ((r = provision_call_lock_pool(call, error)) < 0 || (r = find_free(call, id, &item, error)) < 0)
                return r;
        if (call->kind->no_device && !item.limited) /* a directory has the size that it is given */
                item.size_bytes = call->request->size_bytes;
        if ((r = check_disk(call, id, &item, error)) < 0 || (r = check_still_blank(call, id, error)) < 0)
                return r;
        if (call->pool.path[0] != '\0') {
                cleanup_close int pool_fd = pool_use(&call->config, &call->pool, error);

                if (pool_fd < 0)
                        return pool_fd;
        }
        if ((r = pool_kind_check_parameters(call->kind, call->request->parameters, error)) < 0)
                return r;
        provision_call_init_record(call, ret_record);
        if ((r = provision_call_check_target(call, ret_record, error)) < 0 ||
            (r = pool_kind_check_machines(call->kind, ret_record->parameters, error)) < 0)
                return r;
        ret_record->size_bytes = item.size_bytes;
        if (call->request->match && !call->kind->no_device && /* the disk is blank */
            ((r = provision_call_check_type(call, error)) < 0 ||
             (r = provision_call_check_filesystem(call, ret_record,
                                                  pool_parameter_flag(ret_record->parameters, POOL_FOR_MACHINES, false),
                                                  error)) < 0))
                return r;
        return write_record(call, id, &item, ret_record, error);
}

struct match {
        struct provision_call *call;
        struct pool pool; /* the one being searched */
        struct pool best_pool;
        struct pool_item best; /* size 0: none */
        bool unread;           /* the records: no pool's fault */
};

/* No record and no reply can have a name that is no UTF-8. */
static bool can_be_told(const char *id)
{
        cleanup_json json_t *text = json_string(id);

        return text != NULL;
}

static int match_item(const struct pool_item *item, void *argument, struct error *error)
{
        struct match *match = argument;
        struct provision_call *call = match->call;
        char owner[PROVISION_NAME_MAX];
        struct error ignored;
        int r;

        if (item->size_bytes < call->request->size_bytes || is_too_large(call, item) ||
            (match->best.size_bytes != 0 && item->size_bytes >= match->best.size_bytes))
                return 0;
        if (call->kind->fits != NULL &&
            !call->kind->fits(item,
                              call->profile != NULL ? profile_parameters(call->profile) : call->request->parameters))
                return 0;
        if (!can_be_told(item->id))
                return 0;
        if (call->kind->unmarked && !released_disks_has(&call->state, item->identity))
                return 0; /* nothing says that it ever was a volume */
        if ((r = owners_look(call, match->pool.name, item->id, owner, error)) < 0) {
                match->unread = true;
                return r;
        }
        if (check_free(call, &match->pool, r > 0 ? owner : NULL, item->id, &ignored) < 0)
                return 0; /* it is in use */
        r = call->kind->is_blank(&call->config, &match->pool, item->id, &ignored);
        if (r < 0 && r != -ENOENT)
                log_say("skipping %s of pool %s: %s", item->id, match->pool.name, error_why(&ignored));
        if (r <= 0)
                return 0; /* it holds data, or is gone */
        match->best = *item;
        match->best_pool = match->pool;
        call->blank_locks = call->pool_locks;
        return 0;
}

static int match_pool(const struct pool *pool, void *argument, struct error *error)
{
        struct match *match = argument;
        struct provision_call *call = match->call;
        int r = 0;

        if (pool->kind == NULL || (call->profile != NULL && !profile_selects(call->profile, pool)) ||
            !provision_call_is_fit(call, pool))
                return 0;
        match->pool = *pool;
        call->pool = *pool;
        call->kind = pool->kind;
        if (call->request->pool == NULL)
                r = pool_check_answers(&call->config, pool, error);
        if (r == 0)
                r = provision_call_lock_pool(call, error); /* reading a disk may activate it */
        if (r == 0)
                r = call->kind->each(&call->config, pool, match_item, match, error);
        if (r < 0 && call->request->pool == NULL && !match->unread) {
                log_say("skipping pool %s: %s", pool->name, error_why(error));
                return 0;
        }
        return r;
}

/*
 * The smallest blank disk that is large enough: 1 adopted; 0 there is none. All disks of the pools are looked at, since
 * anybody may put one there; of volumes, the records of those that are as large, and smaller than the best so far.
 */
int adopt_match(struct provision_call *call, struct provision_record *ret_record, struct error *error)
{
        for (int i = 0; i < MATCHES_MAX; i++) {
                struct match match = { .call = call };
                struct pool asked;
                int r;

                if (call->request->pool != NULL) {
                        r = provision_call_use_pool(call, call->request->pool, error);
                        asked = call->pool;
                        r = r < 0 ? r : match_pool(&asked, &match, error);
                } else
                        r = pool_each(&call->config, match_pool, &match, error);
                if (r < 0)
                        return r;
                if (match.best.size_bytes == 0)
                        return 0;
                if ((r = provision_call_use_pool(call, match.best_pool.name, error)) < 0)
                        return r;
                r = adopt_disk(call, match.best.id, ret_record, error);
                if (r == 0)
                        return 1;
                provision_record_release(ret_record);
                if (r != -EBUSY && r != -ENOENT)
                        return r;
        }
        return 0;
}
