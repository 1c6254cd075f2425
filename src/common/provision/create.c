/* SPDX-License-Identifier: Apache-2.0 */
#include "provision/call.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/interrupt.h"
#include "base/json.h"
#include "base/text.h"
#include "pool/pool_implied.h"
#include "pool/pool_kind.h"
#include "pool/record.h"
#include "process/log.h"
#include "provision/cdi.h"
#include "provision/profile.h"
#include "provision/provision.h"
#include "provision/reply_object.h"
#include "state/access.h"

static json_t *created_object(const struct provision_call *call, const struct provision_record *record,
                              const struct pool_item *item, bool existed)
{
        const struct provision_done done = {
                .volume = provision_object_found(&call->pool, record, item),
                .existed = existed,
                .profiles = call->request->profile != NULL ? &call->profiles : NULL,
        };

        return provision_object_done(PROVISION_CREATE, &done);
}

static int answer_created(struct provision_call *call, struct provision_record *record, bool existed,
                          struct error *error)
{
        struct pool_item item;
        int r = provision_call_look_again(call, record, &item, error);

        if (r < 0)
                return r;
        call->reply = created_object(call, record, &item, existed);
        return 0;
}

static int fail_different(const char *name, const char *what, const char *had, struct error *error)
{
        return fail_because(error, EEXIST, "create volume", name,
                            "a volume of this name exists, with another %s: \"%.200s\"", what, had);
}

/* What CSI made before that was noted, is CSI's once it is staged (volume/same.h). */
static bool is_noted_later(const struct provision_request *request, const struct provision_record *record)
{
        return request->namespace != NULL && strcmp(request->namespace, PROVISION_OF_CSI) == 0 &&
               record->namespace[0] == '\0';
}

/* With a profile a request has only a few of them. */
static bool has_parameters(const struct provision_request *request, const struct provision_record *record)
{
        const char *key;
        const json_t *value;

        if (request->profile == NULL)
                return json_equal(request->parameters, record->parameters);
        json_object_foreach ((json_t *)request->parameters, key, value)
                if (!json_equal(json_object_get(record->parameters, key), value))
                        return false;
        return true;
}

/* A retry asks for the same; the same name for something else is refused. */
static int check_same(const struct provision_call *call, const struct provision_record *record, struct error *error)
{
        const struct provision_request *request = call->request;
        const char *const pairs[][3] = {
                { "pool", request->pool, record->pool },
                { "profile", request->profile, record->profile },
                { "target type", request->target_type, record->target_type },
                { "filesystem", request->fs_type, record->fs_type },
                { "id", request->id, record->id },
                { "target", request->target, record->target },
                { "source", request->from, record->copy_of },
                { "namespace", is_noted_later(request, record) ? NULL : request->namespace, record->namespace },
                { "reclaimPolicy (which \"modify\" changes)", request->reclaim_policy, record->reclaim_policy },
        };
        char size[32];

        if (record->snapshot_of[0] != '\0')
                return fail_because(error, EEXIST, "create volume", request->name,
                                    "something else has the name \"%.200s\": a snapshot of %.200s", request->name,
                                    record->snapshot_of);
        for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
                if (pairs[i][1] != NULL && strcmp(pairs[i][1], pairs[i][2]) != 0)
                        return fail_different(request->name, pairs[i][0], pairs[i][2], error);
        if (request->namespace != NULL && record->driver[0] != '\0' && record->namespace[0] == '\0')
                return fail_different(request->name, "maker, a FlexVolume driver", record->driver, error);
        if (request->parameters != NULL && !has_parameters(request, record))
                return fail_different(request->name, "set of parameters", "", error);
        if ((request->erases || request->keeps_content) && record->keeps_content != request->keeps_content)
                return fail_different(request->name, "eraseAfter (which \"modify\" changes)",
                                      record->keeps_content ? "false" : "true", error);
        if (request->limit_bytes != 0 && record->size_bytes > request->limit_bytes)
                return fail_because(error, EEXIST, "create volume", request->name,
                                    "a volume of this name exists, of %llu bytes, and the limit is %llu",
                                    (unsigned long long)record->size_bytes, (unsigned long long)request->limit_bytes);
        (void)snprintf(size, sizeof size, "%llu", (unsigned long long)record->size_bytes);
        if (request->from != NULL && request->size_bytes == 0)
                return 0;
        if (record->adopted ? request->size_bytes > record->size_bytes
                            : request->size_bytes != record->asked_bytes && request->size_bytes != record->size_bytes)
                return fail_different(request->name, "size", size, error);
        return 0;
}

/* An id that is free, and room: what ret_record needs to be made. With the pool's lock. */
int create_claim(struct provision_call *call, uint64_t size_bytes, struct provision_record *ret_record,
                 struct error *error)
{
        struct pool_measure measure = {};
        struct pool_item item;
        char owner[PROVISION_NAME_MAX] = "";
        int r;

        if (call->kind->choose_identity != NULL && (r = call->kind->choose_identity(ret_record->identity, error)) < 0)
                return r;
        if ((r = provision_call_check_target(call, ret_record, error)) < 0 ||
            (r = pool_kind_check_parameters(call->kind, ret_record->parameters, error)) < 0)
                return r;
        if (call->kind->choose_directory == NULL)
                call->kind->choose_id(&call->pool, ret_record->name, ret_record->id);
        else if ((r = call->kind->choose_directory(&call->pool, ret_record, ret_record->id, error)) < 0)
                return r;
        r = call->kind->look(&call->config, &call->pool, ret_record->id, &item, error);
        if (r == 0 || r == -ENOENT) {
                int known = owners_look(call, call->pool.name, ret_record->id, owner, error);

                if (known < 0)
                        return known;
        }
        if (r == 0 && owner[0] == '\0' && call->kind->is_of_other_call != NULL &&
            call->kind->is_of_other_call(&call->config, &call->pool, ret_record))
                r = -ENOENT;
        if (r == 0)
                return fail_because(error, EEXIST, "create volume", ret_record->id,
                                    "%s already exists in pool \"%.128s\"%s%.200s; to adopt it, name it as \"id\"",
                                    ret_record->id, call->pool.name, owner[0] != '\0' ? ", of volume " : "", owner);
        if (owner[0] != '\0' && !call->kind->remote)
                return fail_because(error, EEXIST, "create volume", ret_record->id,
                                    "%s of pool \"%.128s\" is the volume \"%.200s\", which is lost; delete that first",
                                    ret_record->id, call->pool.name, owner);
        if (owner[0] != '\0' && (r = delete_record_left(call, owner, ret_record->id, error)) < 0)
                return r;
        if (r < 0 && r != -ENOENT)
                return r;
        if (call->kind->no_device && (r = owners_check_apart(call, ret_record->id, /* new= */ true, error)) < 0)
                return r;
        if ((r = provision_call_check_room(call, ret_record, size_bytes, &measure, error)) < 0)
                return r;
        if (size_bytes < measure.minimum_bytes)
                size_bytes = measure.minimum_bytes;
        ret_record->size_bytes = pool_measure_align(&measure, size_bytes);
        if (call->request->limit_bytes != 0 && ret_record->size_bytes > call->request->limit_bytes)
                return fail_because(error, ERANGE, "create volume", ret_record->name,
                                    "pool \"%.128s\" would give it %llu bytes, and the limit is %llu", call->pool.name,
                                    (unsigned long long)ret_record->size_bytes,
                                    (unsigned long long)call->request->limit_bytes);
        return provision_call_check_filesystem(
                call, ret_record, pool_parameter_flag(ret_record->parameters, POOL_FOR_MACHINES, false), error);
}

/* With the pool's lock. */
static int make_record(struct provision_call *call, struct provision_record *ret_record, struct error *error)
{
        int r = call->kind->no_device ? 0 : provision_call_check_type(call, error);

        if (r < 0)
                return r;
        provision_call_init_record(call, ret_record);
        (void)text_copy(ret_record->reclaim_policy, sizeof ret_record->reclaim_policy,
                        call->request->reclaim_policy ?: "delete");
        return create_claim(call, call->request->size_bytes, ret_record, error);
}

struct choice {
        struct provision_call *call;
        const char *after; /* pools up to this name were tried; "": none was */
        struct pool pool;
        uint64_t largest_bytes; /* of those that were too small */
        bool selected;          /* any at all */
        int failed;             /* the first that could not be looked at; 0: all could */
        struct error *failure;  /* why */
        struct pool unfit;      /* one that cannot have the volume, whatever its size; without a name: none */
};

static bool has_type(const struct provision_call *call, const struct pool *pool)
{
        const char *const *types = call->request->pool_types;

        return types == NULL || text_among(pool->kind->type, types);
}

static bool is_selected(const struct provision_call *call, const struct pool *pool)
{
        return pool->kind != NULL && profile_selects(call->profile, pool) && has_type(call, pool);
}

/* The others are tried. */
static void note_failure(struct choice *choice, const struct pool *pool, int failed, const struct error *error)
{
        log_say("skipping pool %s: %s", pool->name, error_why(error));
        if (choice->failed < 0)
                return;
        choice->failed = failed;
        *choice->failure = *error;
}

/* The first that has room, by name. */
static int choose_pool(const struct pool *pool, void *argument, struct error *error)
{
        struct choice *choice = argument;
        const struct provision_call *call = choice->call;
        struct pool_measure measure = {};
        int r;

        if (!is_selected(call, pool) || strcmp(pool->name, choice->after) <= 0)
                return 0;
        if (!provision_call_is_fit(call, pool) ||
            pool_kind_check_parameters(pool->kind, profile_parameters(call->profile), error) < 0) {
                choice->unfit = *pool;
                return 0;
        }
        if ((r = pool_check_answers(&call->config, pool, error)) == 0)
                r = pool->kind->measure(&call->config, pool, profile_parameters(call->profile), &measure, error);
        if (r == 0 && measure.problem != NULL) {
                choice->unfit = *pool;
                return 0;
        }
        if (r < 0) {
                note_failure(choice, pool, r, error);
                return 0;
        }
        choice->selected = true;
        if (measure.largest_bytes >= call->request->size_bytes) {
                choice->pool = *pool;
                return 1;
        }
        if (measure.largest_bytes > choice->largest_bytes)
                choice->largest_bytes = measure.largest_bytes;
        return 0;
}

/* The pool that has the disk to adopt. */
static int choose_holder(const struct pool *pool, void *argument, struct error *error)
{
        struct choice *choice = argument;
        const struct provision_call *call = choice->call;
        struct pool_item item;
        int r;

        if (!is_selected(call, pool))
                return 0;
        if ((r = pool_check_answers(&call->config, pool, error)) == 0)
                r = pool->kind->look(&call->config, pool, call->request->id, &item, error);
        if (r < 0 && r != -ENOENT && r != -EINVAL)
                note_failure(choice, pool, r, error);
        else
                choice->selected = true;
        if (r < 0)
                return 0; /* it is not in this one */
        choice->pool = *pool;
        return 1;
}

static int find_pool(struct provision_call *call, const char *after, struct error *error)
{
        const struct provision_request *request = call->request;
        static struct error failure;
        struct choice choice = { .call = call, .after = after, .failure = &failure };
        const char *const *types = request->pool_types;
        const char *type = types != NULL && types[1] == NULL ? types[0] : NULL; /* the only one */
        int r;

        if (call->profile == NULL && pool_implied_by(request->parameters)) {
                char name[POOL_NAME_MAX];

                if (request->pool != NULL)
                        return fail_because(error, EINVAL, "find pool", request->pool,
                                            "\"pool\" and the parameters \"server\" and \"share\" say two places");
                r = pool_imply(&call->config, request->parameters, name, error);
                return r < 0 ? r : provision_call_use_pool(call, name, error);
        }
        if (request->pool != NULL || call->profile == NULL) {
                if ((r = provision_call_use_pool(call, request->pool ?: POOL_DEFAULT, error)) < 0)
                        return r;
                if (!has_type(call, &call->pool))
                        return fail_because(error, EINVAL, "find pool", call->pool.name,
                                            "pool \"%.128s\" is of type %s, which has no volumes for this use",
                                            call->pool.name, call->pool.kind->type);
                if (call->profile != NULL && !is_selected(call, &call->pool))
                        return fail_because(error, EINVAL, "find pool", request->pool,
                                            "profile \"%.200s\" does not select pool \"%.128s\"", request->profile,
                                            request->pool);
                return 0;
        }
        r = pool_each(&call->config, request->id != NULL ? choose_holder : choose_pool, &choice, error);
        if (r < 0)
                return r;
        if (r > 0)
                return provision_call_use_pool(call, choice.pool.name, error);
        if (choice.failed < 0 && (!choice.selected || request->id != NULL)) {
                *error = failure;
                if (choice.failed == -ENODEV || choice.failed == -ENOENT)
                        return choice.failed;
                /* nothing was made: of CSI's volumes the scheduler may try another node */
                return fail_because(error, ENODEV, "find pool", request->profile,
                                    "no pool of profile \"%.200s\" can be looked at: %.600s", request->profile,
                                    error_why(&failure));
        }
        if (!choice.selected && choice.unfit.name[0] != '\0' && after[0] == '\0') /* create_claim() says why not */
                return provision_call_use_pool(call, choice.unfit.name, error);
        if (!choice.selected)
                return fail_because(error, ENOENT, "find pool", request->profile,
                                    "profile \"%.200s\" selects no pool%s%s", request->profile,
                                    type != NULL                  ? " of type "
                                    : request->pool_types != NULL ? " with volumes for this use"
                                                                  : "",
                                    type ?: "");
        if (request->id != NULL)
                return fail_because(error, ENOENT, "find pool", request->id,
                                    "no pool of profile \"%.200s\" has \"%.200s\"", request->profile, request->id);
        return fail_because(
                error, ENOSPC, "find pool", request->profile,
                "the pools of profile \"%.200s\" have room for a volume of %llu bytes at most, and the request "
                "is for %llu",
                request->profile, (unsigned long long)choice.largest_bytes, (unsigned long long)request->size_bytes);
}

static int find_profile(struct provision_call *call, struct error *error)
{
        const struct provision_request *request = call->request;
        const char *given = request->target_type;
        int r = 0;

        if (request->profile == NULL)
                return 0;
        if ((r = profiles_find(&call->profiles, request->profile, &call->profile, error)) < 0)
                return r;
        if (given != NULL && access_is_block(given) != profile_is_block(call->profile))
                return fail_because(error, EINVAL, "find profile", request->profile,
                                    "volumes of profile \"%.200s\" are not of target type %s", request->profile, given);
        if (request->fs_type != NULL && profile_is_block(call->profile))
                return fail_because(error, EINVAL, "find profile", request->profile,
                                    "volumes of profile \"%.200s\" have no filesystem", request->profile);
        return 0;
}

/* After a failure, which is the one to report. */
void create_undo(struct provision_call *call, const struct provision_record *record)
{
        const bool everywhere = pool_kind_is_one_everywhere(call->kind, record);
        struct pool_item item;
        struct error ignored;
        int r = call->kind->look(&call->config, &call->pool, record->id, &item, &ignored);

        /* what another process made under that id stays; another node's call may have answered with it by now, and what
         * is empty the next call takes */
        if (r == -ENOENT || (r == 0 && !everywhere && provision_call_is_volume(record, &item)))
                r = call->kind->remove(&call->config, &call->pool, record->id, &ignored);
        if (r == 0)
                (void)provision_record_remove(&call->state, record->name, record->id, &ignored);
}

int create_forget(struct provision_call *call, const struct provision_record *record, int failure)
{
        struct error ignored;

        (void)provision_record_remove(&call->state, record->name, record->id, &ignored);
        return failure;
}

static int make(struct provision_call *call, struct provision_record *record, struct error *error)
{
        struct pool_item item = {};
        int r = call->kind->create(&call->config, &call->pool, record, &item, error);

        if (r == -EEXIST)
                return create_forget(call, record, r);
        if (r == 0 && item.id[0] == '\0')
                r = provision_call_look_again(call, record, &item, error);
        if (r == 0)
                r = interrupt_check("create volume", record->name, error);
        if (r == 0) {
                (void)text_copy(record->identity, sizeof record->identity, item.identity);
                record->lifecycle = PROVISION_CREATED;
                r = provision_record_write(&call->state, record, FILE_DURABLE, error);
        }
        if (r < 0) {
                create_undo(call, record);
                return r;
        }
        log_say("created volume %s of %llu bytes in pool %s", record->name, (unsigned long long)record->size_bytes,
                call->pool.name);
        call->reply = created_object(call, record, &item, /* existed= */ false);
        return 0;
}

/*
 * In the pool that was found; or in the next one of the profile, where that has no room any more, or gives volumes sizes
 * beyond the limit. With the lock of that pool.
 */
static int claim(struct provision_call *call, struct provision_record *ret_record, struct error *error)
{
        char tried[POOL_NAME_MAX];
        struct error ignored; /* the failure to claim is the one to report */
        int r;

        while ((r = provision_call_lock_pool(call, error)) == 0) {
                r = make_record(call, ret_record, error);
                if ((r != -ENOSPC && r != -ERANGE) || call->profile == NULL || call->request->pool != NULL)
                        return r;
                (void)text_copy(tried, sizeof tried, call->pool.name); /* as long */
                provision_call_unlock_pool(call);
                if (find_pool(call, tried, &ignored) < 0)
                        return r;
                provision_record_release(ret_record);
        }
        return r;
}

static int create_new(struct provision_call *call, struct error *error)
{
        cleanup_provision_record struct provision_record record = {};
        int r;

        cdi_begin_change(&call->config, &call->state, call->request->name);
        if (call->request->from != NULL) {
                r = copy_volume(call, &record, error);
                return r < 0 ? r : answer_created(call, &record, /* existed= */ false, error);
        }
        if ((r = find_profile(call, error)) < 0)
                return r;
        if (call->request->match) {
                r = adopt_match(call, &record, error);
                if (r != 0)
                        return r < 0 ? r : answer_created(call, &record, /* existed= */ false, error);
        }
        if ((r = find_pool(call, /* after= */ "", error)) < 0)
                return r;
        if (call->request->id != NULL) {
                r = adopt_disk(call, call->request->id, &record, error);
                return r < 0 ? r : answer_created(call, &record, /* existed= */ false, error);
        }
        if ((r = claim(call, &record, error)) < 0 ||
            (r = provision_record_write(&call->state, &record, FILE_DURABLE, error)) < 0)
                return r;
        return make(call, &record, error);
}

/* What is only read when the volume is deleted, so that its users notice nothing. */
static int modify(struct provision_call *call, struct provision_record *record, struct error *error)
{
        const struct provision_request *request = call->request;
        int r;

        if (record->lifecycle != PROVISION_CREATED)
                return fail_because(error, EBUSY, "modify volume", record->name,
                                    "its creation or deletion has not finished; repeat that call first");
        if (record->snapshot_of[0] != '\0')
                return fail_because(error, EINVAL, "modify volume", record->name, "it is a snapshot");
        if (request->reclaim_policy != NULL)
                (void)text_copy(record->reclaim_policy, sizeof record->reclaim_policy, request->reclaim_policy);
        if (request->keeps_content || request->erases)
                record->keeps_content = request->keeps_content;
        if ((r = provision_record_write(&call->state, record, FILE_DURABLE, error)) < 0)
                return r;
        return answer_created(call, record, /* existed= */ true, error);
}

int create_volume(struct provision_call *call, struct error *error)
{
        cleanup_provision_record struct provision_record record = {};
        int r = provision_record_read(&call->state, call->request->name, &record, error);

        if (r == -ENOENT && call->request->modify)
                return provision_fail_absent("modify volume", call->request->name, error);
        if (r == -ENOENT)
                return create_new(call, error);
        if (r < 0 || (r = provision_call_use_pool_of(call, &record, error)) < 0)
                return r;
        if (call->request->modify)
                return modify(call, &record, error);
        if (record.lifecycle == PROVISION_CREATED)
                return (r = check_same(call, &record, error)) < 0
                               ? r
                               : answer_created(call, &record, /* existed= */ true, error);
        /* a process was killed while it made or deleted it: start again, since its room may be taken by now */
        if ((r = delete_check_thawed(call, &record, error)) < 0 ||
            /* who copies has a day for it */
            (call->request->from == NULL && (r = delete_check_soon(call, &record, error)) < 0) ||
            (r = provision_call_lock_pool(call, error)) < 0)
                return r;
        if ((r = delete_finish(call, &record, /* asked= */ NULL, error)) < 0)
                return r;
        return create_new(call, error);
}
