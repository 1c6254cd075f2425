/* SPDX-License-Identifier: Apache-2.0 */
#include "provision/provision.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/reply.h"
#include "base/text.h"
#include "block/lvm.h"
#include "block/pmem.h"
#include "process/log.h"
#include "process/proc.h"
#include "process/worker.h"
#include "provision/idempotency.h"
#include "provision/pool_kind.h"
#include "provision/pool_loop.h"
#include "provision/pool_lvm.h"
#include "provision/pool_pmem.h"
#include "provision/pool_pmem_lvm.h"
#include "provision/profile.h"
#include "provision/record.h"
#include "provision/released_disks.h"
#include "state/config.h"
#include "state/state_dir.h"
#include "state/volume_record.h"

#define ERASE_SECONDS (24 * 3600U)
#define TIDY_ERASE_MAX_BYTES ((uint64_t)16 << 30) /* so much as is done while a node starts */
#define MATCHES_MAX 8                             /* how often somebody else may be quicker */

struct job {
        const struct provision_request *request;
        struct config config;
        struct state state;
        struct profiles profiles;
        const json_t *profile; /* the request's; NULL: none; borrowed from profiles */
        struct pool pool;
        const struct pool_kind *kind; /* the pool's */
        uint64_t pool_key;            /* its lock, once it is */
        bool pool_locked;
        json_t *owners; /* of disks, by what put_key() makes; owned */
        json_t *places; /* of pools, by name; owned */
        json_t *paths;  /* of disks, by put_name(); owned; of a list */
        json_t *reply;
};

static const struct pool_kind *kind_of(const struct pool *pool)
{
        static const struct pool_kind *const kinds[] = { &pool_loop, &pool_lvm, &pool_pmem };

        size_t i = 0;

        if (pool->region[0] != '\0' && pool->volume_group[0] != '\0')
                return pool_pmem_lvm();
        while (i + 1 < sizeof kinds / sizeof kinds[0] && strcmp(kinds[i]->type, pool->type ?: "") != 0)
                i++; /* one of them it is: pool_find() knows no other types */
        return kinds[i];
}

static void unlock_pool(struct job *job)
{
        if (job->pool_locked)
                state_unlock(&job->state, job->pool_key);
        job->pool_locked = false;
}

/* One at a time: two calls could wait for each other's, and would for ever. */
static int lock_pool(struct job *job, struct error *error)
{
        char place[POOL_PLACE_SIZE];
        int r = job->kind->place(&job->config, &job->pool, place, error);
        uint64_t key;

        if (r < 0)
                return r;
        key = hash_bytes(HASH_SEED, place, strlen(place));
        if (job->pool_locked && job->pool_key == key)
                return 0;
        unlock_pool(job);
        if ((r = state_lock(&job->state, key, error)) < 0)
                return r;
        job->pool_key = key;
        job->pool_locked = true;
        return 0;
}

static int use_pool(struct job *job, const char *name, struct error *error)
{
        int r = pool_find(&job->config, name, &job->pool, error);

        if (r == 0)
                job->kind = kind_of(&job->pool);
        return r;
}

/* Whether what has the volume's id is the volume: others may have taken that away, and made something of its name. */
static bool is_it(const struct provision_record *record, const struct pool_item *item)
{
        if (record->identity[0] != '\0' && item->identity[0] != '\0')
                return strcmp(record->identity, item->identity) == 0;
        return record->adopted || item->ours;
}

/* ---- the answer */

static json_t *volume_object(const struct provision_record *record, const char *path)
{
        json_t *volume =
                json_pack("{s:o, s:s, s:s, s:o, s:I, s:s, s:s, s:b, s:s, s:O}", "name", reply_printable(record->name),
                          "pool", record->pool, "type", record->pool_type, "id", reply_printable(record->id), "size",
                          (json_int_t)record->size_bytes, "targetType", record->target_type, "reclaimPolicy",
                          record->reclaim_policy, "adopted", record->adopted, "state",
                          provision_stage_word(record->stage), "parameters", record->parameters);
        const char *const optional[][2] = {
                { "profile", record->profile },
                { "fsType", record->fs_type },
                { "accessMode", record->access_mode },
                { "path", path },
        };

        for (size_t i = 0; volume != NULL && i < sizeof optional / sizeof optional[0]; i++)
                if (optional[i][1][0] != '\0')
                        (void)json_object_set_new(volume, optional[i][0], reply_printable(optional[i][1]));
        if (volume != NULL && json_array_size(record->mount_flags) > 0)
                (void)json_object_set(volume, "mountFlags", record->mount_flags);
        return volume;
}

static json_t *created_object(const struct provision_record *record, const char *path, bool existed)
{
        return json_pack("{s:s, s:o, s:b}", "status", "Success", "volume", volume_object(record, path), "existed",
                         existed);
}

static int look_again(const struct job *job, const struct provision_record *record, struct pool_item *ret_item,
                      struct error *error)
{
        int r = job->kind->look(&job->config, &job->pool, record->id, ret_item, error);

        if (r == -ENOENT || (r == 0 && !is_it(record, ret_item)))
                return fail_because(error, ENOENT, "look again", record->id,
                                    "the volume is not in pool \"%.128s\" any more; volume-delete forgets it",
                                    record->pool);
        return r;
}

static int answer_created(struct job *job, const struct provision_record *record, bool existed, struct error *error)
{
        struct pool_item item;
        int r = look_again(job, record, &item, error);

        if (r < 0)
                return r;
        job->reply = created_object(record, item.path, existed);
        return 0;
}

/* ---- which disks are volumes already */

#define OWNER_KEY_SIZE (POOL_PLACE_SIZE + PROVISION_ID_MAX)

/* What a disk is known by, whatever its pool is called. A pool that cannot be looked at is known by its name. */
static void put_key(const struct job *job, const char *pool_name, const char *id, char *ret_key)
{
        const char *known = json_string_value(json_object_get(job->places, pool_name));
        char place[POOL_PLACE_SIZE];
        struct error ignored;
        struct pool pool;

        if (known == NULL && (pool_find(&job->config, pool_name, &pool, &ignored) < 0 ||
                              kind_of(&pool)->place(&job->config, &pool, place, &ignored) < 0))
                (void)snprintf(place, sizeof place, "pool:%s", pool_name);
        else if (known == NULL && pool.volume_group[0] != '\0') /* be it of a region or not */
                (void)snprintf(place, sizeof place, "lvm:%s", pool.volume_group);
        if (known == NULL)
                (void)json_object_set_new(job->places, pool_name,
                                          json_string(place)); /* else looked at again next time */
        (void)snprintf(ret_key, OWNER_KEY_SIZE, "%s/%s", known != NULL ? known : place, id);
}

static int note_owner(const struct provision_record *record, const char *stem, void *argument, struct error *error)
{
        struct job *job = argument;
        char key[OWNER_KEY_SIZE];

        (void)error;
        if (record != NULL)
                put_key(job, record->pool, record->id, key);
        else /* of another version: what it most likely calls its own */
                (void)snprintf(key, sizeof key, "stem:%.255s", stem);
        (void)json_object_set_new(job->owners, key, reply_printable(record != NULL ? record->name : stem));
        return 0;
}

/* Every disk that is a volume. */
static int read_owners(struct job *job, struct error *error)
{
        json_decref(job->owners);
        json_decref(job->places);
        job->owners = json_object();
        job->places = json_object();
        return job->state.dir_fd < 0 ? 0 : provision_record_each(&job->state, note_owner, job, error);
}

/* The volume that a disk is; NULL: none. After read_owners(). */
static const char *owner_of(const struct job *job, const char *pool, const char *id)
{
        const char *end = strrchr(id, '.');
        char key[OWNER_KEY_SIZE];
        const char *name;

        put_key(job, pool, id, key);
        name = json_string_value(json_object_get(job->owners, key));
        if (name != NULL)
                return name;
        (void)snprintf(key, sizeof key, "stem:%.*s", (int)(end != NULL ? end - id : (long)strlen(id)), id);
        return json_string_value(json_object_get(job->owners, key));
}

struct attached {
        const char *path;
        char boot_id[PROC_BOOT_ID_SIZE];
        char found[VOLUME_NAME_MAX];
};

static int match_attached(struct volume_record *record, const char *file, void *argument, struct error *error)
{
        struct attached *attached = argument;

        (void)file;
        (void)error;
        if (record == NULL || record->device[0] == '\0' || strcmp(record->source, attached->path) != 0 ||
            strcmp(record->boot_id, attached->boot_id) != 0)
                return 0;
        (void)text_copy(attached->found, sizeof attached->found, record->name);
        return 1;
}

/* That neither the driver has it attached nor anybody else uses it. */
static int check_unused(const struct job *job, const struct pool *pool, const char *id, struct error *error)
{
        struct attached attached = {};
        cleanup_state struct state volumes = STATE_NONE;
        struct pool_item item;
        int r = kind_of(pool)->look(&job->config, pool, id, &item, error);

        if (r < 0)
                return r == -ENOENT ? 0 : r;
        if ((r = kind_of(pool)->check_unused(&job->config, pool, id, error)) < 0)
                return r;
        attached.path = item.path;
        if ((r = proc_boot_id(attached.boot_id)) < 0)
                return fail(error, -r, "read", "boot_id");
        r = state_open(job->config.state_dir, "volumes", /* create= */ false, &volumes, error);
        if (r == 0)
                r = volume_record_each(&volumes, /* set_aside= */ false, match_attached, &attached, error);
        if (r > 0)
                return fail_because(error, EBUSY, "look for users", item.path,
                                    "it is attached, as the volume \"%.200s\" of the driver; detach it first",
                                    attached.found);
        return r == -ENOENT ? 0 : r;
}

/* ---- create */

static int fail_different(const char *name, const char *what, const char *had, struct error *error)
{
        return fail_because(error, EEXIST, "create volume", name,
                            "a volume of this name is there already, with another %s: \"%.200s\"", what, had);
}

/* The same name for something else is no retry. */
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

static void begin_record(const struct job *job, struct provision_record *ret_record)
{
        const struct provision_request *request = job->request;
        const json_t *profile = job->profile;
        bool block = profile != NULL ? profile_is_block(profile)
                                     : request->target_type != NULL && strcmp(request->target_type, "block") == 0;
        const json_t *parameters = profile != NULL ? profile_parameters(profile) : request->parameters;
        const json_t *flags = profile != NULL ? profile_mount_flags(profile) : NULL;
        const char *fs_type = request->fs_type != NULL ? request->fs_type
                              : profile != NULL        ? profile_fs_type(profile)
                                                       : "";

        *ret_record = (struct provision_record){ .asked_bytes = request->size_bytes,
                                                 .keeps_content = request->keeps_content };
        /* each as long as the request, or the profile, may have it */
        (void)text_copy(ret_record->name, sizeof ret_record->name, request->name);
        (void)text_copy(ret_record->pool, sizeof ret_record->pool, job->pool.name);
        (void)text_copy(ret_record->pool_type, sizeof ret_record->pool_type, job->pool.type);
        (void)text_copy(ret_record->profile, sizeof ret_record->profile, request->profile ?: "");
        (void)text_copy(ret_record->target_type, sizeof ret_record->target_type, block ? "block" : "mount");
        (void)text_copy(ret_record->fs_type, sizeof ret_record->fs_type, block ? "" : fs_type);
        (void)text_copy(ret_record->access_mode, sizeof ret_record->access_mode,
                        profile != NULL ? profile_access_mode(profile) : "");
        ret_record->parameters = parameters != NULL ? json_incref((json_t *)parameters) : json_object();
        ret_record->mount_flags = flags != NULL ? json_incref((json_t *)flags) : json_array();
}

/* With the pool's lock. */
static int make_record(struct job *job, struct provision_record *ret_record, struct error *error)
{
        struct pool_measure measure = {};
        struct pool_item item;
        uint64_t size_bytes = job->request->size_bytes;
        const char *owner;
        int r;

        begin_record(job, ret_record);
        job->kind->choose_id(&job->pool, job->request->name, ret_record->id);
        if (job->kind->choose_identity != NULL && (r = job->kind->choose_identity(ret_record->identity, error)) < 0)
                return r;
        (void)text_copy(ret_record->reclaim_policy, sizeof ret_record->reclaim_policy,
                        job->request->reclaim_policy ?: "delete");
        if ((r = job->kind->check_parameters(ret_record->parameters, error)) < 0)
                return r;
        r = job->kind->look(&job->config, &job->pool, ret_record->id, &item, error);
        if (r == 0 && (r = read_owners(job, error)) == 0) {
                owner = owner_of(job, job->pool.name, ret_record->id);
                return fail_because(
                        error, EEXIST, "create volume", ret_record->id,
                        "there is a %s in pool \"%.128s\" already%s%.200s; with \"id\" a volume adopts what is there",
                        ret_record->id, job->pool.name, owner != NULL ? ", of volume " : "",
                        owner != NULL ? owner : "");
        }
        if (r < 0 && r != -ENOENT)
                return r;
        if ((r = job->kind->measure(&job->config, &job->pool, ret_record->parameters, &measure, error)) < 0)
                return r;
        if (size_bytes > measure.largest_bytes)
                return fail_because(error, ENOSPC, "create volume", job->pool.name,
                                    "the largest volume that pool \"%.128s\" has room for is of %llu bytes, and %llu "
                                    "were asked for",
                                    job->pool.name, (unsigned long long)measure.largest_bytes,
                                    (unsigned long long)size_bytes);
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

        if (pool->type == NULL || !profile_selects(job->profile, pool))
                return 0;
        choice->selected = true;
        r = kind_of(pool)->measure(&job->config, pool, profile_parameters(job->profile), &measure, error);
        if (r < 0) {
                log_say("the pool %s is passed over: %s", pool->name, error_why(error));
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

/* Whose disk is adopted. */
static int choose_holder(const struct pool *pool, void *argument, struct error *error)
{
        struct choice *choice = argument;
        const struct job *job = choice->job;
        struct pool_item item;

        if (pool->type == NULL || !profile_selects(job->profile, pool))
                return 0;
        choice->selected = true;
        if (kind_of(pool)->look(&job->config, pool, job->request->id, &item, error) < 0)
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
                if ((r = use_pool(job, request->pool ?: POOL_DEFAULT, error)) < 0)
                        return r;
                if (job->profile != NULL && !profile_selects(job->profile, &job->pool))
                        return fail_because(error, EINVAL, "find pool", request->pool,
                                            "the profile \"%.200s\" is not for pool \"%.128s\"", request->profile,
                                            request->pool);
                return 0;
        }
        r = pool_each(&job->config, request->id != NULL ? choose_holder : choose_pool, &choice, error);
        if (r < 0)
                return r;
        if (r > 0)
                return use_pool(job, choice.pool.name, error);
        if (!choice.selected)
                return fail_because(error, ENOENT, "find pool", request->profile,
                                    "no pool is of the profile \"%.200s\"", request->profile);
        if (request->id != NULL)
                return fail_because(error, ENOENT, "find pool", request->id,
                                    "there is no \"%.200s\" in the pools of profile \"%.200s\"", request->id,
                                    request->profile);
        return fail_because(error, ENOSPC, "find pool", request->profile,
                            "the largest volume that a pool of profile \"%.200s\" has room for is of %llu bytes, and "
                            "%llu were asked for",
                            request->profile, (unsigned long long)choice.largest_bytes,
                            (unsigned long long)request->size_bytes);
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

/* ---- adopt: a volume of what is there already */

/* That a disk is nobody's; after read_owners(). */
static int check_free(const struct job *job, const struct pool *pool, const char *id, struct error *error)
{
        const char *owner = owner_of(job, pool->name, id);

        if (owner != NULL)
                return fail_because(error, EBUSY, "adopt", id, "it is the volume \"%.200s\" already", owner);
        return check_unused(job, pool, id, error);
}

static int adopt(struct job *job, const char *id, struct provision_record *ret_record, struct error *error)
{
        struct pool_item item;
        int r;

        if ((r = lock_pool(job, error)) < 0)
                return r;
        r = job->kind->look(&job->config, &job->pool, id, &item, error);
        if (r == -ENOENT)
                return fail_because(error, ENOENT, "adopt", id, "there is no \"%.200s\" in pool \"%.128s\"", id,
                                    job->pool.name);
        if (r < 0 || (r = read_owners(job, error)) < 0 || (r = check_free(job, &job->pool, id, error)) < 0)
                return r;
        if (item.size_bytes < job->request->size_bytes || item.size_bytes == 0)
                return fail_because(error, ERANGE, "adopt", id, "it has %llu bytes, and %llu were asked for",
                                    (unsigned long long)item.size_bytes, (unsigned long long)job->request->size_bytes);
        if (job->profile != NULL && job->kind->fits != NULL &&
            !job->kind->fits(&item, profile_parameters(job->profile)))
                return fail_because(error, EINVAL, "adopt", id,
                                    "it lies there as \"%s\", and not as the profile \"%.200s\" asks for", item.layout,
                                    job->request->profile);
        begin_record(job, ret_record);
        (void)text_copy(ret_record->id, sizeof ret_record->id, id);
        (void)text_copy(ret_record->identity, sizeof ret_record->identity, item.identity);
        (void)text_copy(ret_record->reclaim_policy, sizeof ret_record->reclaim_policy,
                        job->request->reclaim_policy ?: "retain");
        ret_record->adopted = true;
        ret_record->size_bytes = item.size_bytes;
        ret_record->stage = PROVISION_CREATED;
        if ((r = provision_record_write(&job->state, ret_record, error)) < 0)
                return r;
        return released_disks_remove(&job->state, item.identity, error);
}

struct match {
        struct job *job;
        struct pool pool; /* that is looked through, and that of the best */
        struct pool best_pool;
        struct pool_item best; /* size 0: none */
};

static int match_item(const struct pool_item *item, void *argument, struct error *error)
{
        struct match *match = argument;
        struct job *job = match->job;
        struct error ignored;
        int r;

        (void)error;
        if (item->size_bytes < job->request->size_bytes ||
            (match->best.size_bytes != 0 && item->size_bytes >= match->best.size_bytes))
                return 0;
        if (job->kind->fits != NULL &&
            !job->kind->fits(item, job->profile != NULL ? profile_parameters(job->profile) : job->request->parameters))
                return 0;
        if (check_free(job, &match->pool, item->id, &ignored) < 0)
                return 0; /* somebody's */
        if (job->kind->unmarked && !released_disks_has(&job->state, item->identity))
                return 0; /* likewise: nothing says that it was ever ours */
        r = job->kind->is_blank(&job->config, &match->pool, item->id, &ignored);
        if (r < 0 && r != -ENOENT)
                log_say("%s of pool %s is passed over: %s", item->id, match->pool.name, error_why(&ignored));
        if (r <= 0)
                return 0; /* somebody's data; or it went */
        match->best = *item;
        match->best_pool = match->pool;
        return 0;
}

static int match_pool(const struct pool *pool, void *argument, struct error *error)
{
        struct match *match = argument;
        struct job *job = match->job;
        int r;

        if (pool->type == NULL || (job->profile != NULL && !profile_selects(job->profile, pool)))
                return 0;
        match->pool = *pool;
        job->pool = *pool;
        job->kind = kind_of(pool);
        r = lock_pool(job, error); /* to look into a disk may wake it */
        if (r == 0)
                r = job->kind->each(&job->config, pool, match_item, match, error);
        if (r < 0 && job->request->pool == NULL) {
                log_say("the pool %s is passed over: %s", pool->name, error_why(error));
                return 0;
        }
        return r;
}

/* The smallest blank disk that is large enough: 1 adopted; 0 there is none. */
static int adopt_match(struct job *job, struct provision_record *ret_record, struct error *error)
{
        for (int i = 0; i < MATCHES_MAX; i++) {
                struct match match = { .job = job };
                struct pool asked;
                int r = read_owners(job, error);

                if (r == 0 && job->request->pool != NULL) {
                        r = use_pool(job, job->request->pool, error);
                        asked = job->pool;
                        r = r < 0 ? r : match_pool(&asked, &match, error);
                } else if (r == 0)
                        r = pool_each(&job->config, match_pool, &match, error);
                if (r < 0)
                        return r;
                if (match.best.size_bytes == 0)
                        return 0;
                if ((r = use_pool(job, match.best_pool.name, error)) < 0)
                        return r;
                r = adopt(job, match.best.id, ret_record, error);
                if (r == 0)
                        return 1;
                provision_record_release(ret_record);
                if (r != -EBUSY && r != -ENOENT)
                        return r;
        }
        return 0;
}

/* After a failure, which is the one to tell. */
static void unmake(struct job *job, const struct provision_record *record)
{
        struct pool_item item;
        struct error ignored;
        int r = job->kind->look(&job->config, &job->pool, record->id, &item, &ignored);

        /* what is somebody else's is not ours to remove */
        if (r == -ENOENT || (r == 0 && is_it(record, &item)))
                r = job->kind->remove(&job->config, &job->pool, record->id, &ignored);
        if (r == 0)
                (void)provision_record_remove(&job->state, record->name, &ignored);
}

static int make(struct job *job, struct provision_record *record, struct error *error)
{
        struct pool_item item;
        int r = job->kind->create(&job->config, &job->pool, record, error);

        if (r == 0)
                r = look_again(job, record, &item, error);
        if (r == 0) {
                (void)text_copy(record->identity, sizeof record->identity, item.identity);
                record->stage = PROVISION_CREATED;
                r = provision_record_write(&job->state, record, error);
        }
        if (r < 0) {
                unmake(job, record);
                return r;
        }
        log_say("made the volume %s of %llu bytes in pool %s", record->name, (unsigned long long)record->size_bytes,
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
                r = adopt(job, job->request->id, &record, error);
                return r < 0 ? r : answer_created(job, &record, /* existed= */ false, error);
        }
        if ((r = lock_pool(job, error)) < 0 || (r = make_record(job, &record, error)) < 0 ||
            (r = provision_record_write(&job->state, &record, error)) < 0)
                return r;
        return make(job, &record, error);
}

/* ---- delete */

/* Whether the volume is there, perhaps in part, and nobody uses it: 1; 0 it is gone, and what is there is others'. */
static int find_unused(const struct job *job, const struct provision_record *record, struct error *error)
{
        struct pool_item item;
        int r = job->kind->look(&job->config, &job->pool, record->id, &item, error);

        if (r == 0 && !is_it(record, &item)) {
                log_say("%s of pool %s is left alone: it is not the volume %s any more", record->id, record->pool,
                        record->name);
                return 0;
        }
        if (r < 0 && r != -ENOENT)
                return r;
        r = check_unused(job, &job->pool, record->id, error);
        return r < 0 ? r : 1;
}

/* With the locks of name and pool; without the pool's while everything is overwritten, which may take hours. */
static int give_back(struct job *job, const struct provision_record *record, bool erase, bool begun,
                     struct error *error)
{
        int r;

        if (strcmp(record->reclaim_policy, "retain") == 0)
                return released_disks_add(&job->state, record->identity, error);
        if (strcmp(record->reclaim_policy, "recycle") == 0) {
                unlock_pool(job);
                r = job->kind->wipe(&job->config, &job->pool, record->id, error);
                return r < 0 ? r : released_disks_add(&job->state, record->identity, error);
        }
        if (erase && job->kind->erase != NULL) {
                unlock_pool(job);
                if ((r = job->kind->erase(&job->config, &job->pool, record->id, begun, error)) < 0 ||
                    (r = lock_pool(job, error)) < 0 || (r = find_unused(job, record, error)) <= 0)
                        return r;
        }
        return job->kind->remove(&job->config, &job->pool, record->id, error);
}

/* What was begun is gone through with; with the locks of name and pool. asked: a policy instead of its own, or NULL. */
static int take_away(struct job *job, struct provision_record *record, const char *asked, struct error *error)
{
        const enum provision_stage was = record->stage;
        char policy[sizeof record->reclaim_policy];
        int r = find_unused(job, record, error);

        if (r < 0)
                return r;
        if (r == 0)
                return provision_record_remove(&job->state, record->name, error);
        (void)text_copy(policy, sizeof policy, record->reclaim_policy);
        if (was == PROVISION_CREATING && !record->adopted)
                asked = "delete"; /* what was never finished is nobody's to keep */
        if (asked != NULL)
                (void)text_copy(record->reclaim_policy, sizeof record->reclaim_policy, asked);
        record->stage = PROVISION_DELETING;
        r = provision_record_write(&job->state, record, error);
        /* on a full disk it makes room; cut short now, the volume would be there without its disk, and deleted again */
        if (r < 0 && !((r == -ENOSPC || r == -EDQUOT) && strcmp(record->reclaim_policy, "delete") == 0))
                return r;
        r = give_back(job, record, was != PROVISION_CREATING && !record->keeps_content, was == PROVISION_DELETING,
                      error);
        if ((r == -EBUSY || r == -ENODEV) && was == PROVISION_CREATED) {
                struct error ignored; /* the first failure is the one to tell */

                record->stage = was; /* nothing was taken from it, and whoever has it may go on */
                (void)text_copy(record->reclaim_policy, sizeof record->reclaim_policy, policy);
                (void)provision_record_write(&job->state, record, &ignored);
        }
        if (r < 0 && r != -ENOENT)
                return r;
        log_say("gave the volume %s back to pool %s (%s)", record->name, record->pool, record->reclaim_policy);
        return provision_record_remove(&job->state, record->name, error);
}

static int delete_volume(struct job *job, struct error *error)
{
        const struct provision_request *request = job->request;
        cleanup_provision_record struct provision_record record = {};
        int r = provision_record_read(&job->state, request->name, &record, error);

        if (r == -ENOENT) {
                if ((r = provision_record_remove(&job->state, request->name, error)) <
                    0) /* what is left of writing one */
                        return r;
                job->reply = json_pack("{s:s, s:o, s:b}", "status", "Success", "name", reply_printable(request->name),
                                       "existed", false);
                return 0;
        }
        if (r < 0 || (r = use_pool(job, record.pool, error)) < 0 || (r = lock_pool(job, error)) < 0)
                return r;
        if ((r = take_away(job, &record, request->reclaim_policy, error)) < 0)
                return r;
        job->reply = json_pack("{s:s, s:o, s:b, s:s, s:s}", "status", "Success", "name", reply_printable(request->name),
                               "existed", true, "pool", record.pool, "reclaimPolicy", record.reclaim_policy);
        return 0;
}

static int create_volume(struct job *job, struct error *error)
{
        cleanup_provision_record struct provision_record record = {};
        int r = provision_record_read(&job->state, job->request->name, &record, error);

        if (r == -ENOENT)
                return create_new(job, error);
        if (r < 0 || (r = use_pool(job, record.pool, error)) < 0)
                return r;
        if (record.stage == PROVISION_CREATED)
                return (r = check_same(job, &record, error)) < 0
                               ? r
                               : answer_created(job, &record, /* existed= */ true, error);
        /* somebody was killed at it: all of it once more, since its room may be another's by now */
        if ((r = lock_pool(job, error)) < 0)
                return r;
        if ((r = take_away(job, &record, /* asked= */ NULL, error)) < 0)
                return r;
        return create_new(job, error);
}

/* ---- list and capacity */

static void put_name(const char *pool, const char *id, char *ret_name)
{
        (void)snprintf(ret_name, OWNER_KEY_SIZE, "%s/%s", pool, id);
}

/* After all the disks. */
static int add_volume(const struct provision_record *record, const char *stem, void *argument, struct error *error)
{
        struct job *job = argument;
        json_t *volumes = json_object_get(job->reply, "volumes");
        char name[OWNER_KEY_SIZE];
        const char *path;
        json_t *volume;
        size_t at = 0;

        (void)stem;
        (void)error;
        if (record == NULL || (job->request->pool != NULL && strcmp(job->request->pool, record->pool) != 0))
                return 0;
        put_name(record->pool, record->id, name);
        path = json_string_value(json_object_get(job->paths, name));
        volume = volume_object(record, path != NULL ? path : "");
        if (volume != NULL && path == NULL && record->stage == PROVISION_CREATED)
                (void)json_object_set_new(volume, "missing", json_true());
        while (at < json_array_size(volumes) &&
               strcmp(json_string_value(json_object_get(json_array_get(volumes, at), "name")), record->name) < 0)
                at++;
        (void)json_array_insert_new(volumes, at, volume);
        return 0;
}

struct disks {
        const struct job *job;
        const struct pool *pool;
        json_t *list;
};

static int add_disk(const struct pool_item *item, void *argument, struct error *error)
{
        const struct disks *disks = argument;
        char name[OWNER_KEY_SIZE];

        (void)error;
        put_name(disks->pool->name, item->id, name);
        (void)json_object_set_new(disks->job->paths, name, reply_printable(item->path));
        if (owner_of(disks->job, disks->pool->name, item->id) != NULL)
                return 0;
        (void)json_array_append_new(disks->list, json_pack("{s:o, s:s, s:s, s:I, s:o, s:s}", "id",
                                                           reply_printable(item->id), "pool", disks->pool->name, "type",
                                                           disks->pool->type, "size", (json_int_t)item->size_bytes,
                                                           "path", reply_printable(item->path), "targetType", "raw"));
        return 0;
}

static json_t *measure_object(const struct pool_measure *measure)
{
        return json_pack("{s:I, s:I, s:I, s:I}", "total", (json_int_t)measure->total_bytes, "available",
                         (json_int_t)measure->available_bytes, "largest", (json_int_t)measure->largest_bytes,
                         "alignment", (json_int_t)measure->alignment_bytes);
}

static int add_profiles(struct job *job, const struct pool *pool, json_t *list, struct error *error)
{
        const char *name;
        const json_t *profile;

        json_object_foreach (job->profiles.active, name, profile) {
                struct pool_measure measure;
                json_t *object;
                int r;

                if (!profile_selects(profile, pool) ||
                    (job->request->profile != NULL && strcmp(job->request->profile, name) != 0))
                        continue;
                if (kind_of(pool)->check_parameters(profile_parameters(profile), error) < 0) {
                        (void)json_array_append_new(list, json_pack("{s:o, s:o}", "profile", reply_printable(name),
                                                                    "problem", reply_printable(error_why(error))));
                        continue;
                }
                r = kind_of(pool)->measure(&job->config, pool, profile_parameters(profile), &measure, error);
                if (r < 0)
                        return r;
                object = measure_object(&measure);
                (void)json_object_set_new(object, "profile", reply_printable(name));
                (void)json_object_del(object, "total"); /* is the pool's */
                (void)json_array_append_new(list, object);
        }
        return 0;
}

static int add_pool(const struct pool *pool, void *argument, struct error *error)
{
        struct job *job = argument;
        struct pool_measure measure = {};
        json_t *object;
        int r;

        r = pool->type == NULL ? error_negative(error->errnum)
                               : kind_of(pool)->measure(&job->config, pool, NULL, &measure, error);
        if (r < 0 && job->request->pool != NULL)
                return r;
        if (r < 0) { /* the others are there all the same */
                (void)json_array_append_new(json_object_get(job->reply, "pools"),
                                            json_pack("{s:s, s:s?, s:o}", "name", pool->name, "type", pool->type,
                                                      "problem", reply_printable(error_why(error))));
                return 0;
        }
        object = measure_object(&measure);
        (void)json_object_set_new(object, "name", json_string(pool->name));
        (void)json_object_set_new(object, "type", json_string(pool->type));
        (void)json_array_append_new(json_object_get(job->reply, "pools"), object);
        if (job->request->verb == PROVISION_LIST) {
                struct disks disks = { .job = job, .pool = pool, .list = json_object_get(job->reply, "disks") };

                (void)json_object_set_new(object, "targetType", json_string("raw"));
                r = kind_of(pool)->each(&job->config, pool, add_disk, &disks, error);
                if (r < 0 && job->request->pool == NULL)
                        (void)json_object_set_new(object, "problem", reply_printable(error_why(error)));
                return r < 0 && job->request->pool == NULL ? 0 : r;
        }
        (void)json_object_set_new(object, "profiles", json_array());
        return add_profiles(job, pool, json_object_get(object, "profiles"), error);
}

static int look_at_all(struct job *job, struct error *error)
{
        struct pool asked = {};
        int r;

        if (job->request->pool != NULL && (r = pool_find(&job->config, job->request->pool, &asked, error)) < 0)
                return r;
        if (job->request->verb == PROVISION_LIST && (r = read_owners(job, error)) < 0)
                return r;
        job->paths = json_object();
        if (job->request->verb == PROVISION_LIST)
                job->reply = json_pack("{s:s, s:[], s:[], s:[]}", "status", "Success", "pools", "disks", "volumes");
        else {
                const json_t *ignored;
                const char *name;
                json_t *inactive = json_array();

                json_object_foreach (job->profiles.inactive, name, ignored)
                        (void)json_array_append_new(inactive, reply_printable(name));
                job->reply = json_pack("{s:s, s:[], s:o}", "status", "Success", "pools", "inactiveProfiles", inactive);
                if (job->profiles.problem[0] != '\0')
                        (void)json_object_set_new(job->reply, "profilesProblem",
                                                  reply_printable(job->profiles.problem));
                if (job->request->profile != NULL &&
                    (r = profiles_find(&job->profiles, job->request->profile, &ignored, error)) < 0)
                        return r;
        }
        r = job->request->pool != NULL ? add_pool(&asked, job, error) : pool_each(&job->config, add_pool, job, error);
        if (r < 0 || job->request->verb != PROVISION_LIST || job->state.dir_fd < 0)
                return r;
        return provision_record_each(&job->state, add_volume, job, error);
}

/* ---- */

/* One operation at a time has its id, whatever volume it is about. */
static int lock_operation(struct job *job, const char *id, struct error *error)
{
        uint64_t key = hash_bytes(HASH_SEED, "operation/", strlen("operation/"));

        return state_lock(&job->state, hash_bytes(key, id, strlen(id)), error);
}

static int change(struct job *job, struct error *error)
{
        const struct provision_request *request = job->request;
        int r = request->operation != NULL ? lock_operation(job, request->operation, error) : 0;

        if (r == 0 && request->operation != NULL)
                r = idempotency_recall(job->config.state_dir, request->operation, request->json, &job->reply, error);
        if (r < 0 || job->reply != NULL)
                return r;
        if ((r = state_lock(&job->state, volume_record_key(request->name), error)) < 0)
                return r;
        r = request->verb == PROVISION_CREATE ? create_volume(job, error) : delete_volume(job, error);
        if (r == 0 && request->operation != NULL)
                r = idempotency_remember(job->config.state_dir, request->operation, request->json, job->reply, error);
        return r;
}

static int run(void *argument, struct error *error)
{
        struct job *job = argument;
        bool changes = job->request->verb == PROVISION_CREATE || job->request->verb == PROVISION_DELETE;
        int r = provision_record_open(job->config.state_dir, changes, &job->state, error);

        if (r < 0 && (changes || r != -ENOENT))
                return r;
        if ((job->request->verb == PROVISION_CREATE || job->request->verb == PROVISION_CAPACITY) &&
            (r = profiles_load(job->config.state_dir, &job->profiles, error)) < 0)
                return r;
        return changes ? change(job, error) : look_at_all(job, error);
}

void provision_end(void)
{
        lvm_end();
        pmem_end();
}

static void release(struct job *job)
{
        profiles_release(&job->profiles);
        json_decref(job->owners);
        json_decref(job->places);
        json_decref(job->paths);
        state_release(&job->state); /* also for a worker that hangs and shares our descriptors */
}

static int run_here(const struct config *config, const struct provision_request *request, struct error *error)
{
        static struct job job; /* static, for its size */
        int r;

        job = (struct job){ .request = request, .config = *config, .state = STATE_NONE };
        r = run(&job, error);
        release(&job);
        json_decref(job.reply);
        return r;
}

int provision_make(const struct config *config, const struct provision_request *request, struct error *error)
{
        return run_here(config, request, error);
}

int provision_unmake(const struct config *config, const char *name, struct error *error)
{
        const struct provision_request request = { .verb = PROVISION_DELETE, .name = name };

        return run_here(config, &request, error);
}

/* With the lock of its name. Returns 1: it is one, and there is room for it. */
static int check_growth(struct job *job, struct provision_record *record, uint64_t size_bytes, struct error *error)
{
        struct pool_measure measure = {};
        struct pool_item item;
        int r;

        if (record->stage != PROVISION_CREATED)
                return fail_because(error, EBUSY, "grow volume", record->name,
                                    "the volume is half made, or half deleted");
        if ((r = use_pool(job, record->pool, error)) < 0 || (r = lock_pool(job, error)) < 0 ||
            (r = look_again(job, record, &item, error)) < 0 ||
            (r = job->kind->measure(&job->config, &job->pool, record->parameters, &measure, error)) < 0)
                return r;
        if (size_bytes > item.size_bytes && size_bytes - item.size_bytes > measure.available_bytes)
                return fail_because(error, ENOSPC, "grow volume", record->name,
                                    "pool \"%.128s\" has room for it to grow by %llu bytes, to %llu", record->pool,
                                    (unsigned long long)measure.available_bytes,
                                    (unsigned long long)(item.size_bytes + measure.available_bytes));
        return 1;
}

static int grow(struct job *job, const char *name, uint64_t size_bytes, provision_grow_function *function,
                void *argument, struct error *error)
{
        cleanup_provision_record struct provision_record record = {};
        uint64_t got_bytes;
        int r = provision_record_open(job->config.state_dir, /* create= */ false, &job->state, error);

        if (r == 0 && (r = state_lock(&job->state, volume_record_key(name), error)) == 0)
                r = provision_record_read(&job->state, name, &record, error);
        if (r == 0)
                r = check_growth(job, &record, size_bytes, error);
        if (r == -ENOENT)
                return function(argument, &got_bytes, error);
        if (r < 0 || (r = function(argument, &got_bytes, error)) < 0)
                return r;
        if (got_bytes <= record.size_bytes)
                return 0;
        record.size_bytes = got_bytes;
        return provision_record_write(&job->state, &record, error);
}

int provision_grow(const struct config *config, const char *name, uint64_t size_bytes,
                   provision_grow_function *function, void *argument, struct error *error)
{
        static struct job job; /* static, for its size */
        int r;

        job = (struct job){ .config = *config, .state = STATE_NONE };
        r = grow(&job, name, size_bytes, function, argument, error);
        release(&job);
        return r;
}

struct tidying {
        struct job *job;
        bool dry_run;
        provision_tell *tell;
        void *argument;
};

/* With the lock of its name. Returns 1: it is tidied, or would be. */
static int tidy(const struct tidying *tidying, const char *name, struct error *error)
{
        cleanup_provision_record struct provision_record record = {};
        struct job *job = tidying->job;
        int r = provision_record_read(&job->state, name, &record, error);

        if (r < 0 || record.stage == PROVISION_CREATED)
                return r == -ENOENT ? 0 : r;
        if (tidying->dry_run)
                return 1;
        if ((r = use_pool(job, record.pool, error)) < 0)
                return r;
        if (record.stage == PROVISION_DELETING && !record.keeps_content && job->kind->erase != NULL &&
            strcmp(record.reclaim_policy, "retain") != 0 && record.size_bytes > TIDY_ERASE_MAX_BYTES)
                return fail_because(error, EBUSY, "delete volume", name,
                                    "%llu bytes are still to be overwritten, which volume-delete has the time for",
                                    (unsigned long long)record.size_bytes);
        if ((r = lock_pool(job, error)) < 0)
                return r;
        r = take_away(job, &record, /* asked= */ NULL, error);
        return r < 0 ? r : 1;
}

static int tidy_one(const struct provision_record *record, const char *stem, void *argument, struct error *error)
{
        const struct tidying *tidying = argument;
        struct state *state = &tidying->job->state;
        struct error failure = {};
        int r;

        (void)stem;
        (void)error;
        if (record == NULL || record->stage == PROVISION_CREATED ||
            !state_try_lock(state, volume_record_key(record->name))) /* a call is at it */
                return 0;
        r = tidy(tidying, record->name, &failure);
        if (r != 0)
                tidying->tell(record->name, r < 0 ? &failure : NULL, tidying->argument);
        state_unlock(state, volume_record_key(record->name));
        return 0;
}

int provision_tidy(const struct config *config, bool dry_run, provision_tell *tell, void *argument, struct error *error)
{
        static struct job job; /* static, for its size */
        const struct tidying tidying = { .job = &job, .dry_run = dry_run, .tell = tell, .argument = argument };
        int r;

        job = (struct job){ .config = *config, .state = STATE_NONE };
        r = provision_record_open(config->state_dir, /* create= */ false, &job.state, error);
        if (r == 0)
                r = provision_record_each(&job.state, tidy_one, (void *)&tidying, error);
        release(&job);
        return r == -ENOENT ? 0 : r;
}

int provision_begin(int argc, char **argv, struct error *error)
{
        int r = lvm_begin(argc, argv, error);

        return r < 0 ? r : pmem_begin(argc, argv, error);
}

int provision_run(const struct provision_request *request, json_t **ret_reply, struct error *error)
{
        static const char *const subjects[] = { "volume-create", "volume-delete", "volume-list", "volume-capacity" };
        static struct job job; /* static, for its size */
        unsigned seconds;
        int r;

        job.request = request;
        job.state = (struct state)STATE_NONE;
        r = config_load(&job.config, error);
        log_begin(subjects[request->verb], r == 0 ? job.config.log : "syslog");
        if (r < 0)
                return r;
        /* to overwrite a large volume takes as long as it takes */
        seconds = request->verb == PROVISION_DELETE ? ERASE_SECONDS
                                                    : job.config.call_seconds + job.config.command_seconds;
        r = worker_run(run, &job, clock_now_ms() + (int64_t)seconds * 1000, error);
        provision_end();
        release(&job);
        *ret_reply = job.reply;
        return r;
}
