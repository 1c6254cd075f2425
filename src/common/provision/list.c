/* SPDX-License-Identifier: Apache-2.0 */
#include "provision/job.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/reply.h"
#include "provision/pool_kind.h"
#include "provision/profile.h"
#include "provision/record.h"

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
        volume = job_volume_object(record, path != NULL ? path : "");
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
        if (owners_find(disks->job, disks->pool->name, item->id) != NULL)
                return 0;
        (void)json_array_append_new(disks->list,
                                    json_pack("{s:o, s:s, s:s, s:I, s:o, s:s}", "id", reply_printable(item->id), "pool",
                                              disks->pool->name, "type", disks->pool->kind->type, "size",
                                              (json_int_t)item->size_bytes, "path", reply_printable(item->path),
                                              "targetType", "raw"));
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
                if (pool_kind_check_parameters(pool->kind, profile_parameters(profile), error) < 0) {
                        (void)json_array_append_new(list, json_pack("{s:o, s:o}", "profile", reply_printable(name),
                                                                    "problem", reply_printable(error_why(error))));
                        continue;
                }
                r = pool->kind->measure(&job->config, pool, profile_parameters(profile), &measure, error);
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

        r = pool->kind == NULL ? error_negative(error->errnum)
                               : pool->kind->measure(&job->config, pool, NULL, &measure, error);
        if (r < 0 && job->request->pool != NULL)
                return r;
        if (r < 0 || pool->kind == NULL) { /* the other pools are listed */
                (void)json_array_append_new(json_object_get(job->reply, "pools"),
                                            json_pack("{s:s, s:s?, s:o}", "name", pool->name, "type",
                                                      pool->kind != NULL ? pool->kind->type : NULL, "problem",
                                                      reply_printable(error_why(error))));
                return 0;
        }
        object = measure_object(&measure);
        (void)json_object_set_new(object, "name", json_string(pool->name));
        (void)json_object_set_new(object, "type", json_string(pool->kind->type));
        (void)json_array_append_new(json_object_get(job->reply, "pools"), object);
        if (job->request->verb == PROVISION_LIST) {
                struct disks disks = { .job = job, .pool = pool, .list = json_object_get(job->reply, "disks") };

                (void)json_object_set_new(object, "targetType", json_string("raw"));
                r = pool->kind->each(&job->config, pool, add_disk, &disks, error);
                if (r < 0 && job->request->pool == NULL)
                        (void)json_object_set_new(object, "problem", reply_printable(error_why(error)));
                return r < 0 && job->request->pool == NULL ? 0 : r;
        }
        (void)json_object_set_new(object, "profiles", json_array());
        return add_profiles(job, pool, json_object_get(object, "profiles"), error);
}

int list_pools(struct job *job, struct error *error)
{
        struct pool asked = {};
        int r;

        if (job->request->pool != NULL && (r = pool_find(&job->config, job->request->pool, &asked, error)) < 0)
                return r;
        if (job->request->verb == PROVISION_LIST && (r = owners_read(job, error)) < 0)
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
