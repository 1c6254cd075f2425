/* SPDX-License-Identifier: Apache-2.0 */
#include "provision/job.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "process/log.h"
#include "provision/pool_kind.h"
#include "provision/profile.h"
#include "provision/record.h"

static json_t *created_object(const struct provision_record *record, const char *path, bool existed)
{
        return json_pack("{s:s, s:o, s:b}", "status", "Success", "volume", job_volume_object(record, path), "existed",
                         existed);
}

static int answer_created(struct job *job, const struct provision_record *record, bool existed, struct error *error)
{
        struct pool_item item;
        int r = job_look_again(job, record, &item, error);

        if (r < 0)
                return r;
        job->reply = created_object(record, item.path, existed);
        return 0;
}

static int fail_different(const char *name, const char *what, const char *had, struct error *error)
{
        return fail_because(error, EEXIST, "create volume", name,
                            "a volume of this name exists, with another %s: \"%.200s\"", what, had);
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
        };
        char size[32];

        for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
                if (pairs[i][1] != NULL && strcmp(pairs[i][1], pairs[i][2]) != 0)
                        return fail_different(request->name, pairs[i][0], pairs[i][2], error);
        if (request->parameters != NULL && !json_equal(request->parameters, record->parameters))
                return fail_different(request->name, "set of parameters", "", error);
        (void)snprintf(size, sizeof size, "%llu", (unsigned long long)record->size_bytes);
        if (record->adopted ? request->size_bytes > record->size_bytes
                            : request->size_bytes != record->asked_bytes && request->size_bytes != record->size_bytes)
                return fail_different(request->name, "size", size, error);
        return 0;
}

/* With the pool's lock. */
static int make_record(struct job *job, struct provision_record *ret_record, struct error *error)
{
        struct pool_measure measure = {};
        struct pool_item item;
        uint64_t size_bytes = job->request->size_bytes;
        const char *owner;
        int r;

        job_begin_record(job, ret_record);
        job->kind->choose_id(&job->pool, job->request->name, ret_record->id);
        if (job->kind->choose_identity != NULL && (r = job->kind->choose_identity(ret_record->identity, error)) < 0)
                return r;
        (void)text_copy(ret_record->reclaim_policy, sizeof ret_record->reclaim_policy,
                        job->request->reclaim_policy ?: "delete");
        if ((r = pool_kind_check_parameters(job->kind, ret_record->parameters, error)) < 0)
                return r;
        r = job->kind->look(&job->config, &job->pool, ret_record->id, &item, error);
        if (r == 0 && (r = owners_read(job, error)) == 0) {
                owner = owners_find(job, job->pool.name, ret_record->id);
                return fail_because(error, EEXIST, "create volume", ret_record->id,
                                    "%s already exists in pool \"%.128s\"%s%.200s; to adopt it, name it as \"id\"",
                                    ret_record->id, job->pool.name, owner != NULL ? ", of volume " : "",
                                    owner != NULL ? owner : "");
        }
        if (r < 0 && r != -ENOENT)
                return r;
        if ((r = job->kind->measure(&job->config, &job->pool, ret_record->parameters, &measure, error)) < 0)
                return r;
        if (size_bytes > measure.largest_bytes)
                return fail_because(
                        error, ENOSPC, "create volume", job->pool.name,
                        "pool \"%.128s\" has room for a volume of %llu bytes at most, and the request is for %llu",
                        job->pool.name, (unsigned long long)measure.largest_bytes, (unsigned long long)size_bytes);
        if (size_bytes < measure.minimum_bytes)
                size_bytes = measure.minimum_bytes;
        ret_record->size_bytes =
                (size_bytes + measure.alignment_bytes - 1) / measure.alignment_bytes * measure.alignment_bytes;
        return 0;
}

struct choice {
        struct job *job;
        struct pool pool;
        uint64_t largest_bytes; /* of those that were too small */
        bool selected;          /* any at all */
};

/* The first that has room, by name. */
static int choose_pool(const struct pool *pool, void *argument, struct error *error)
{
        struct choice *choice = argument;
        const struct job *job = choice->job;
        struct pool_measure measure = {};
        int r;

        if (pool->kind == NULL || !profile_selects(job->profile, pool))
                return 0;
        choice->selected = true;
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

        if (pool->kind == NULL || !profile_selects(job->profile, pool))
                return 0;
        choice->selected = true;
        if (pool->kind->look(&job->config, pool, job->request->id, &item, error) < 0)
                return 0; /* it is not in this one */
        choice->pool = *pool;
        return 1;
}

static int find_pool(struct job *job, struct error *error)
{
        const struct provision_request *request = job->request;
        struct choice choice = { .job = job };
        int r;

        if (request->pool != NULL || job->profile == NULL) {
                if ((r = job_use_pool(job, request->pool ?: POOL_DEFAULT, error)) < 0)
                        return r;
                if (job->profile != NULL && !profile_selects(job->profile, &job->pool))
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
        if (!choice.selected)
                return fail_because(error, ENOENT, "find pool", request->profile, "profile \"%.200s\" selects no pool",
                                    request->profile);
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
static void unmake(struct job *job, const struct provision_record *record)
{
        struct pool_item item;
        struct error ignored;
        int r = job->kind->look(&job->config, &job->pool, record->id, &item, &ignored);

        /* what another process made under that id stays */
        if (r == -ENOENT || (r == 0 && job_is_volume(record, &item)))
                r = job->kind->remove(&job->config, &job->pool, record->id, &ignored);
        if (r == 0)
                (void)provision_record_remove(&job->state, record->name, &ignored);
}

static int make(struct job *job, struct provision_record *record, struct error *error)
{
        struct pool_item item;
        int r = job->kind->create(&job->config, &job->pool, record, error);

        if (r == 0)
                r = job_look_again(job, record, &item, error);
        if (r == 0) {
                (void)text_copy(record->identity, sizeof record->identity, item.identity);
                record->stage = PROVISION_CREATED;
                r = provision_record_write(&job->state, record, error);
        }
        if (r < 0) {
                unmake(job, record);
                return r;
        }
        log_say("created volume %s of %llu bytes in pool %s", record->name, (unsigned long long)record->size_bytes,
                job->pool.name);
        job->reply = created_object(record, item.path, /* existed= */ false);
        return 0;
}

static int create_new(struct job *job, struct error *error)
{
        cleanup_provision_record struct provision_record record = {};
        int r;

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
            (r = provision_record_write(&job->state, &record, error)) < 0)
                return r;
        return make(job, &record, error);
}

int create_volume(struct job *job, struct error *error)
{
        cleanup_provision_record struct provision_record record = {};
        int r = provision_record_read(&job->state, job->request->name, &record, error);

        if (r == -ENOENT)
                return create_new(job, error);
        if (r < 0 || (r = job_use_pool(job, record.pool, error)) < 0)
                return r;
        if (record.stage == PROVISION_CREATED)
                return (r = check_same(job, &record, error)) < 0
                               ? r
                               : answer_created(job, &record, /* existed= */ true, error);
        /* a process was killed while it made or deleted it: start again, since its room may be taken by now */
        if ((r = job_lock_pool(job, error)) < 0)
                return r;
        if ((r = delete_take_away(job, &record, /* asked= */ NULL, error)) < 0)
                return r;
        return create_new(job, error);
}
