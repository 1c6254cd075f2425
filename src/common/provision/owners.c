/* SPDX-License-Identifier: Apache-2.0 */
#include "provision/job.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/reply.h"
#include "base/text.h"
#include "process/proc.h"
#include "provision/pool_kind.h"
#include "state/volume_record.h"

static int find_place(const struct job *job, const char *pool_name, char *ret_place)
{
        struct error ignored;
        struct pool pool;
        int r = pool_find(&job->config, pool_name, &pool, &ignored);

        if (r < 0)
                return r;
        return pool.kind->place_disks != NULL ? pool.kind->place_disks(&job->config, &pool, ret_place, &ignored)
                                              : pool.kind->place(&job->config, &pool, ret_place, &ignored);
}

/* The key of a disk, the same in all pools that have it. A pool that cannot be read counts by its name. */
static void put_key(const struct job *job, const char *pool_name, const char *id, char *ret_key)
{
        const char *known = json_string_value(json_object_get(job->places, pool_name));
        char place[POOL_PLACE_SIZE];

        if (known == NULL && find_place(job, pool_name, place) < 0)
                (void)snprintf(place, sizeof place, "pool:%s", pool_name);
        if (known == NULL)
                (void)json_object_set_new(job->places, pool_name,
                                          json_string(place)); /* else it is looked up again next time */
        (void)snprintf(ret_key, OWNER_KEY_SIZE, "%s/%s", known != NULL ? known : place, id);
}

static int note_owner(const struct provision_record *record, const char *stem, void *argument, struct error *error)
{
        struct job *job = argument;
        char key[OWNER_KEY_SIZE];

        (void)error;
        if (record != NULL)
                put_key(job, record->pool, record->id, key);
        else /* of another version: most likely its id */
                (void)snprintf(key, sizeof key, "stem:%.255s", stem);
        (void)json_object_set_new(job->owners, key, reply_printable(record != NULL ? record->name : stem));
        return 0;
}

/* Collect every disk that is a volume. */
int owners_read(struct job *job, struct error *error)
{
        json_decref(job->owners);
        json_decref(job->places);
        job->owners = json_object();
        job->places = json_object();
        return job->state.dir_fd < 0 ? 0 : provision_record_each(&job->state, note_owner, job, error);
}

/* The volume that a disk is; NULL: none. After owners_read(). */
const char *owners_find(const struct job *job, const char *pool, const char *id)
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

/* That a disk is neither attached by the driver nor in use otherwise. */
int owners_check_unused(const struct job *job, const struct pool *pool, const char *id, struct error *error)
{
        struct attached attached = {};
        cleanup_state struct state volumes = STATE_NONE;
        struct pool_item item;
        int r = pool->kind->look(&job->config, pool, id, &item, error);

        if (r < 0)
                return r == -ENOENT ? 0 : r;
        if ((r = pool->kind->check_unused(&job->config, pool, id, error)) < 0)
                return r;
        attached.path = item.path;
        if ((r = proc_boot_id(attached.boot_id)) < 0)
                return fail(error, -r, "read", "boot_id");
        r = state_open(job->config.state_dir, "volumes", /* create= */ false, &volumes, error);
        if (r == 0)
                r = volume_record_each(&volumes, /* set_aside= */ false, match_attached, &attached, error);
        if (r > 0)
                return fail_because(error, EBUSY, "look for users", item.path,
                                    "the driver has it attached as volume \"%.200s\"; detach it first", attached.found);
        return r == -ENOENT ? 0 : r;
}
