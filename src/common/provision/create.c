/* SPDX-License-Identifier: Apache-2.0 */
#include "provision/job.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/interrupt.h"
#include "base/json.h"
#include "base/text.h"
#include "block/filesystem.h"
#include "pool/pool_implied.h"
#include "pool/pool_kind.h"
#include "pool/record.h"
#include "process/log.h"
#include "provision/cdi.h"
#include "provision/profile.h"
#include "provision/provision.h"

static json_t *created_object(const struct job *job, const struct provision_record *record,
                              const struct pool_item *item, bool existed)
{
        return json_pack("{s:s, s:o, s:b}", "status", "Success", "volume", job_item_object(job, record, item),
                         "existed", existed);
}

static int answer_created(struct job *job, const struct provision_record *record, bool existed, struct error *error)
{
        struct pool_item item;
        int r = job_look_again(job, record, &item, error);

        if (r < 0)
                return r;
        job->reply = created_object(job, record, &item, existed);
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

/* A retry asks for the same; the same name for something else is refused. */
static int check_same(const struct job *job, const struct provision_record *record, struct error *error)
{
        const struct provision_request *request = job->request;
        const char *const pairs[][3] = {
                { "pool", request->pool, record->pool },
                { "profile", request->profile, record->profile },
                { "target type", request->target_type, record->target_type },
                { "filesystem", request->fs_type, record->fs_type },
                { "id", request->id, record->id },
                { "target", request->target, record->target },
                { "source", request->from, record->copy_of },
                { "namespace", is_noted_later(request, record) ? NULL : request->namespace, record->namespace },
        };
        char size[32];

        for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
                if (pairs[i][1] != NULL && strcmp(pairs[i][1], pairs[i][2]) != 0)
                        return fail_different(request->name, pairs[i][0], pairs[i][2], error);
        if (request->namespace != NULL && record->driver[0] != '\0' && record->namespace[0] == '\0')
                return fail_different(request->name, "maker, a FlexVolume driver", record->driver, error);
        if (request->parameters != NULL && !json_equal(request->parameters, record->parameters))
                return fail_different(request->name, "set of parameters", "", error);
        (void)snprintf(size, sizeof size, "%llu", (unsigned long long)record->size_bytes);
        if (request->from != NULL && request->size_bytes == 0)
                return 0;
        if (record->adopted ? request->size_bytes > record->size_bytes
                            : request->size_bytes != record->asked_bytes && request->size_bytes != record->size_bytes)
                return fail_different(request->name, "size", size, error);
        return 0;
}

/* An id that is free, and room: what ret_record needs to be made. With the pool's lock. */
int create_claim(struct job *job, uint64_t size_bytes, struct provision_record *ret_record, struct error *error)
{
        struct pool_measure measure = {};
        struct pool_item item;
        char owner[PROVISION_NAME_MAX] = "";
        int r;

        if (job->kind->choose_identity != NULL && (r = job->kind->choose_identity(ret_record->identity, error)) < 0)
                return r;
        if ((r = job_check_target(job, ret_record, error)) < 0 ||
            (r = pool_kind_check_parameters(job->kind, ret_record->parameters, error)) < 0)
                return r;
        if (job->kind->choose_directory == NULL)
                job->kind->choose_id(&job->pool, ret_record->name, ret_record->id);
        else if ((r = job->kind->choose_directory(&job->pool, ret_record, ret_record->id, error)) < 0)
                return r;
        r = job->kind->look(&job->config, &job->pool, ret_record->id, &item, error);
        if (r == 0 || r == -ENOENT) {
                int known = owners_look(job, job->pool.name, ret_record->id, owner, error);

                if (known < 0)
                        return known;
        }
        if (r == 0)
                return fail_because(error, EEXIST, "create volume", ret_record->id,
                                    "%s already exists in pool \"%.128s\"%s%.200s; to adopt it, name it as \"id\"",
                                    ret_record->id, job->pool.name, owner[0] != '\0' ? ", of volume " : "", owner);
        if (owner[0] != '\0')
                return fail_because(error, EEXIST, "create volume", ret_record->id,
                                    "%s of pool \"%.128s\" is the volume \"%.200s\", which is lost; delete that first",
                                    ret_record->id, job->pool.name, owner);
        if (r < 0 && r != -ENOENT)
                return r;
        if ((r = job_check_room(job, ret_record, size_bytes, &measure, error)) < 0)
                return r;
        if (size_bytes < measure.minimum_bytes)
                size_bytes = measure.minimum_bytes;
        ret_record->size_bytes =
                (size_bytes + measure.alignment_bytes - 1) / measure.alignment_bytes * measure.alignment_bytes;
        if (job->request->limit_bytes != 0 && ret_record->size_bytes > job->request->limit_bytes)
                return fail_because(error, ERANGE, "create volume", ret_record->name,
                                    "pool \"%.128s\" would give it %llu bytes, and the limit is %llu", job->pool.name,
                                    (unsigned long long)ret_record->size_bytes,
                                    (unsigned long long)job->request->limit_bytes);
        return filesystem_check_size(ret_record->fs_type, ret_record->size_bytes, ret_record->name, error);
}

/* With the pool's lock. */
static int make_record(struct job *job, struct provision_record *ret_record, struct error *error)
{
        job_init_record(job, ret_record);
        (void)text_copy(ret_record->reclaim_policy, sizeof ret_record->reclaim_policy,
                        job->request->reclaim_policy ?: "delete");
        return create_claim(job, job->request->size_bytes, ret_record, error);
}

struct choice {
        struct job *job;
        struct pool pool;
        uint64_t largest_bytes; /* of those that were too small */
        bool selected;          /* any at all */
        struct pool unfit;      /* of directories, for a volume that is none; without a name: none */
};

static bool is_selected(const struct job *job, const struct pool *pool)
{
        const char *const *types = job->request->pool_types;

        return pool->kind != NULL && profile_selects(job->profile, pool) &&
               (types == NULL || text_among(pool->kind->type, types));
}

/* Whether volumes of this kind can be what the profile and the request want. */
static bool is_fit(const struct job *job, const struct pool *pool)
{
        const char *fs_type = job->request->fs_type ?: profile_fs_type(job->profile);

        return !pool->kind->no_device || (!profile_is_block(job->profile) && fs_type[0] == '\0');
}

/* The first that has room, by name. */
static int choose_pool(const struct pool *pool, void *argument, struct error *error)
{
        struct choice *choice = argument;
        const struct job *job = choice->job;
        struct pool_measure measure = {};
        int r;

        if (!is_selected(job, pool))
                return 0;
        if (!is_fit(job, pool)) {
                choice->unfit = *pool;
                return 0;
        }
        choice->selected = true;
        if ((r = pool_check_answers(&job->config, pool, error)) == 0)
                r = pool->kind->measure(&job->config, pool, profile_parameters(job->profile), &measure, error);
        if (r < 0) {
                log_say("skipping pool %s: %s", pool->name, error_why(error));
                return 0;
        }
        if (measure.largest_bytes >= job->request->size_bytes) {
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
        const struct job *job = choice->job;
        struct pool_item item;

        if (!is_selected(job, pool))
                return 0;
        choice->selected = true;
        if (pool_check_answers(&job->config, pool, error) < 0 ||
            pool->kind->look(&job->config, pool, job->request->id, &item, error) < 0)
                return 0; /* it is not in this one */
        choice->pool = *pool;
        return 1;
}

static int find_pool(struct job *job, struct error *error)
{
        const struct provision_request *request = job->request;
        struct choice choice = { .job = job };
        int r;

        if (job->profile == NULL && pool_implied_by(request->parameters)) {
                char name[POOL_NAME_MAX];

                if (request->pool != NULL)
                        return fail_because(error, EINVAL, "find pool", request->pool,
                                            "\"pool\" and the parameters \"server\" and \"share\" say two places");
                r = pool_imply(&job->config, request->parameters, name, error);
                return r < 0 ? r : job_use_pool(job, name, error);
        }
        if (request->pool != NULL || job->profile == NULL) {
                if ((r = job_use_pool(job, request->pool ?: POOL_DEFAULT, error)) < 0)
                        return r;
                if (job->profile != NULL && !is_selected(job, &job->pool))
                        return fail_because(error, EINVAL, "find pool", request->pool,
                                            "profile \"%.200s\" does not select pool \"%.128s\"", request->profile,
                                            request->pool);
                return 0;
        }
        r = pool_each(&job->config, request->id != NULL ? choose_holder : choose_pool, &choice, error);
        if (r < 0)
                return r;
        if (r > 0)
                return job_use_pool(job, choice.pool.name, error);
        if (!choice.selected && choice.unfit.name[0] != '\0')
                return job_use_pool(job, choice.unfit.name, error); /* job_check_target() says why not */
        if (!choice.selected)
                return fail_because(error, ENOENT, "find pool", request->profile,
                                    "profile \"%.200s\" selects no pool%s%s", request->profile,
                                    request->pool_types != NULL ? " of type " : "",
                                    request->pool_types != NULL ? request->pool_types[0] : "");
        if (request->id != NULL)
                return fail_because(error, ENOENT, "find pool", request->id,
                                    "no pool of profile \"%.200s\" has \"%.200s\"", request->profile, request->id);
        return fail_because(
                error, ENOSPC, "find pool", request->profile,
                "the pools of profile \"%.200s\" have room for a volume of %llu bytes at most, and the request "
                "is for %llu",
                request->profile, (unsigned long long)choice.largest_bytes, (unsigned long long)request->size_bytes);
}

static int find_profile(struct job *job, struct error *error)
{
        const struct provision_request *request = job->request;
        const char *given = request->target_type;
        int r = 0;

        if (request->profile == NULL)
                return 0;
        if ((r = profiles_find(&job->profiles, request->profile, &job->profile, error)) < 0)
                return r;
        if (given != NULL && (strcmp(given, "block") == 0) != profile_is_block(job->profile))
                return fail_because(error, EINVAL, "find profile", request->profile,
                                    "volumes of profile \"%.200s\" are not of target type %s", request->profile, given);
        if (request->fs_type != NULL && profile_is_block(job->profile))
                return fail_because(error, EINVAL, "find profile", request->profile,
                                    "volumes of profile \"%.200s\" have no filesystem", request->profile);
        return 0;
}

/* After a failure, which is the one to report. */
void create_undo(struct job *job, const struct provision_record *record)
{
        struct pool_item item;
        struct error ignored;
        int r = job->kind->look(&job->config, &job->pool, record->id, &item, &ignored);

        /* what another process made under that id stays */
        if (r == -ENOENT || (r == 0 && job_is_volume(record, &item)))
                r = job->kind->remove(&job->config, &job->pool, record->id, &ignored);
        if (r == 0)
                (void)provision_record_remove(&job->state, record->name, record->id, &ignored);
}

int create_forget(struct job *job, const struct provision_record *record, int failure)
{
        struct error ignored;

        (void)provision_record_remove(&job->state, record->name, record->id, &ignored);
        return failure;
}

static int make(struct job *job, struct provision_record *record, struct error *error)
{
        struct pool_item item = {};
        int r = job->kind->create(&job->config, &job->pool, record, &item, error);

        if (r == -EEXIST)
                return create_forget(job, record, r);
        if (r == 0 && item.id[0] == '\0')
                r = job_look_again(job, record, &item, error);
        if (r == 0)
                r = interrupt_check("create volume", record->name, error);
        if (r == 0) {
                (void)text_copy(record->identity, sizeof record->identity, item.identity);
                record->lifecycle = PROVISION_CREATED;
                r = provision_record_write(&job->state, record, FILE_DURABLE, error);
        }
        if (r < 0) {
                create_undo(job, record);
                return r;
        }
        log_say("created volume %s of %llu bytes in pool %s", record->name, (unsigned long long)record->size_bytes,
                job->pool.name);
        job->reply = created_object(job, record, &item, /* existed= */ false);
        return 0;
}

static int create_new(struct job *job, struct error *error)
{
        cleanup_provision_record struct provision_record record = {};
        int r;

        cdi_begin_change(&job->config, &job->state, job->request->name);
        if (job->request->from != NULL) {
                r = copy_volume(job, &record, error);
                return r < 0 ? r : answer_created(job, &record, /* existed= */ false, error);
        }
        if ((r = find_profile(job, error)) < 0)
                return r;
        if (job->request->match) {
                r = adopt_match(job, &record, error);
                if (r != 0)
                        return r < 0 ? r : answer_created(job, &record, /* existed= */ false, error);
        }
        if ((r = find_pool(job, error)) < 0)
                return r;
        if (job->request->id != NULL) {
                r = adopt_disk(job, job->request->id, &record, error);
                return r < 0 ? r : answer_created(job, &record, /* existed= */ false, error);
        }
        if ((r = job_lock_pool(job, error)) < 0 || (r = make_record(job, &record, error)) < 0 ||
            (r = provision_record_write(&job->state, &record, FILE_DURABLE, error)) < 0)
                return r;
        return make(job, &record, error);
}

/* What is only read when the volume is deleted, so that its users notice nothing. */
static int modify(struct job *job, struct provision_record *record, struct error *error)
{
        const struct provision_request *request = job->request;
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
        if ((r = provision_record_write(&job->state, record, FILE_DURABLE, error)) < 0)
                return r;
        return answer_created(job, record, /* existed= */ true, error);
}

int create_volume(struct job *job, struct error *error)
{
        cleanup_provision_record struct provision_record record = {};
        int r = provision_record_read(&job->state, job->request->name, &record, error);

        if (r == -ENOENT && job->request->modify)
                return provision_fail_absent("modify volume", job->request->name, error);
        if (r == -ENOENT)
                return create_new(job, error);
        if (r < 0 || (r = job_use_pool(job, record.pool, error)) < 0)
                return r;
        if (job->request->modify)
                return modify(job, &record, error);
        if (record.lifecycle == PROVISION_CREATED)
                return (r = check_same(job, &record, error)) < 0
                               ? r
                               : answer_created(job, &record, /* existed= */ true, error);
        /* a process was killed while it made or deleted it: start again, since its room may be taken by now */
        if ((r = delete_check_thawed(job, &record, error)) < 0 || (r = job_lock_pool(job, error)) < 0)
                return r;
        if ((r = delete_finish(job, &record, /* asked= */ NULL, error)) < 0)
                return r;
        return create_new(job, error);
}
