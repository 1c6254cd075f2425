/* SPDX-License-Identifier: Apache-2.0 */
#include "provision/call.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "base/json.h"
#include "base/reply.h"
#include "base/text.h"
#include "pool/pool_kind.h"
#include "pool/record.h"
#include "process/log.h"
#include "provision/disk_uses.h"
#include "provision/profile.h"
#include "provision/reply_object.h"
#include "state/uses.h"
#include "state/volume_record.h"

static void put_name(const char *pool, const char *id, char *ret_name)
{
        (void)snprintf(ret_name, OWNER_KEY_SIZE, "%s/%s", pool, id);
}

struct users {
        const char *node;
        json_t *uses;
        const char *pool_type; /* on a share: of the volume's pool; else NULL */
        const char *path;      /* on a share: where the volume is */
};

/* Of a volume on a share the index knows the name alone: under that, a pod may have something else. */
static bool is_of_another(const struct users *users, const struct use *use)
{
        return users->pool_type != NULL && use->volume != NULL &&
               !volume_record_has(use->volume, users->pool_type, users->path);
}

static int add_use(const struct use *use, void *argument, struct error *error)
{
        const struct users *users = argument;

        (void)error;
        if ((use->kind != USE_PUBLISHED && use->kind != USE_MOUNTED && use->kind != USE_RAW) ||
            is_of_another(users, use))
                return 0;
        (void)json_array_append_new(users->uses, provision_object_use(use, users->node));
        return 0;
}

/* As kubelet calls it, where config.json says that. */
static void put_node(const struct config *config, char *ret_node)
{
        struct utsname names;

        (void)text_copy(ret_node, CONFIG_NODE_NAME_MAX, config->node_name);
        if (ret_node[0] == '\0' && uname(&names) == 0)
                (void)text_copy(ret_node, CONFIG_NODE_NAME_MAX, names.nodename);
}

/* Who has it on this node. NULL: that cannot be found out. */
static json_t *uses_of(const struct provision_call *call, const struct provision_record *record, const char *path)
{
        char keys[USE_KEYS_SIZE] = "";
        char node[CONFIG_NODE_NAME_MAX];
        json_t *uses = json_array();
        struct users users = { .node = node, .uses = uses };
        struct error ignored;
        struct stat st;
        int r = 0;

        put_node(&call->config, node);
        if (path != NULL && path[0] == '/' && lstat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
                use_keys_add_file(keys, st.st_dev, st.st_ino);
        } else if (path != NULL && path[0] != '/') { /* on a share */
                use_keys_add_named(keys, record->name);
                users.pool_type = record->pool_type;
                users.path = path;
        } else {
                r = owners_put_attached(call, record, path, keys, &ignored);
                volume_record_add_ephemeral_dir(keys, record->name);
        }
        if (r == 0)
                r = uses_each(call->config.state_dir, keys, add_use, &users, &ignored);
        if (r == 0 || r == -ENOENT)
                return uses;
        json_decref(uses);
        return NULL;
}

/* Where a name goes in an array of objects that is sorted by name. */
static size_t index_of(const json_t *volumes, const char *name)
{
        size_t first = 0;
        size_t end = json_array_size(volumes);

        while (first < end) {
                size_t middle = first + (end - first) / 2;

                if (strcmp(json_string_value(json_object_get(json_array_get(volumes, middle), "name")), name) < 0)
                        first = middle + 1;
                else
                        end = middle;
        }
        return first;
}

/* Nobody knows what such a pool has. One that is missing, or its group, has none of its volumes. */
static void note_unread(const struct provision_call *call, const char *pool, const struct error *error)
{
        if (error->errnum != ENODEV && error->errnum != ENOENT)
                (void)json_object_set_new(call->unread, pool, reply_printable(error_why(error)));
}

/* After all the disks. */
static int add_volume(const struct provision_record *record, const char *stem, void *argument, struct error *error)
{
        struct provision_call *call = argument;
        json_t *volumes = json_object_get(call->reply, "volumes");
        char name[OWNER_KEY_SIZE];
        json_t *found;
        const char *unread;
        const char *path;
        json_t *volume;

        (void)stem;
        (void)error;
        if (record == NULL || (call->request->pool != NULL && strcmp(call->request->pool, record->pool) != 0))
                return 0;
        put_name(record->pool, record->id, name);
        found = json_object_get(call->paths, name);
        path = json_string_value(json_object_get(found, "path"));
        unread = path == NULL ? json_string_value(json_object_get(call->unread, record->pool)) : NULL;
        volume = provision_object_volume(record, path);
        if (volume != NULL)
                provision_object_put_uses(volume, uses_of(call, record, path),
                                          path == NULL && unread == NULL && record->lifecycle == PROVISION_CREATED);
        if (volume != NULL && unread != NULL)
                provision_object_put_condition(volume, &(const struct provision_condition){ .problem = unread });
        (void)json_object_del(found, "path");
        (void)json_object_update(volume, found);
        (void)json_array_insert_new(volumes, index_of(volumes, record->name), volume);
        return 0;
}

struct disks {
        const struct provision_call *call;
        const struct pool *pool;
        json_t *list;
};

/* What a reply has of a volume, besides what its record says. */
static json_t *found_object(const struct pool *pool, const struct pool_item *item)
{
        const struct provision_condition condition = { .problem = item->problem,
                                                       .measured = item->limited,
                                                       .used_bytes = item->used_bytes,
                                                       .free_bytes = item->size_bytes - item->used_bytes };
        json_t *found = json_pack("{s:o}", "path", reply_printable(item->path));

        provision_object_put_pool(found, pool, item);
        provision_object_put_condition(found, &condition);
        return found;
}

static int add_disk(const struct pool_item *item, void *argument, struct error *error)
{
        const struct disks *disks = argument;
        char name[OWNER_KEY_SIZE];

        (void)error;
        put_name(disks->pool->name, item->id, name);
        (void)json_object_set_new(disks->call->paths, name, found_object(disks->pool, item));
        if (owners_find(disks->call, disks->pool->name, item->id) != NULL)
                return 0;
        (void)json_array_append_new(disks->list, provision_object_disk(disks->pool, item));
        return 0;
}

static int add_profiles(struct provision_call *call, const struct pool *pool, json_t *list, struct error *error)
{
        const char *name;
        const json_t *profile;

        json_object_foreach (call->profiles.active, name, profile) {
                struct pool_measure measure = {};
                int r;

                if (!profile_selects(profile, pool) ||
                    (call->request->profile != NULL && strcmp(call->request->profile, name) != 0))
                        continue;
                /* a request may name another filesystem than its profile's, but none for a directory */
                r = pool->kind->no_device ? profile_check(profile, name, pool, error)
                                          : pool_kind_check_parameters(pool->kind, profile_parameters(profile), error);
                if (r < 0) {
                        (void)json_array_append_new(
                                list, provision_object_profile(name, profile, /* measure= */ NULL, error_why(error)));
                        continue;
                }
                r = pool->kind->measure(&call->config, pool, profile_parameters(profile), &measure, error);
                if (r < 0)
                        return r;
                (void)json_array_append_new(list, provision_object_profile(name, profile, &measure, measure.problem));
        }
        return 0;
}

/* Every disk of a pool. Of all pools' those that cannot be looked at are listed, too. Gives: ret_problem: why not. */
static int add_disks(struct provision_call *call, const struct pool *pool, const char **ret_problem,
                     struct error *error)
{
        struct disks disks = { .call = call, .pool = pool, .list = json_object_get(call->reply, "disks") };
        int r = pool->kind->each(&call->config, pool, add_disk, &disks, error);

        if (r >= 0 || call->request->pool != NULL)
                return r;
        note_unread(call, pool->name, error);
        *ret_problem = error_why(error);
        return 0;
}

static int measure_pool(struct provision_call *call, const struct pool *pool, struct pool_measure *ret_measure,
                        struct error *error)
{
        const json_t *parameters = call->request->parameters;

        if (pool->kind == NULL || pool_check_answers(&call->config, pool, error) < 0 ||
            (parameters != NULL && pool_kind_check_parameters(pool->kind, parameters, error) < 0))
                return error_negative(error->errnum);
        return pool->kind->measure(&call->config, pool, parameters, ret_measure, error);
}

static int add_pool(const struct pool *pool, void *argument, struct error *error)
{
        struct provision_call *call = argument;
        enum provision_verb verb = call->request->verb;
        json_t *pools = json_object_get(call->reply, "pools");
        struct pool_measure measure = {};
        const char *problem;
        json_t *object;
        int r = measure_pool(call, pool, &measure, error);

        if (r < 0 && call->request->pool != NULL)
                return r;
        if (r < 0 || pool->kind == NULL) { /* its file is broken, say; the other pools are listed */
                note_unread(call, pool->name, error);
                (void)json_array_append_new(pools,
                                            provision_object_pool(verb, pool, /* measure= */ NULL, error_why(error)));
                return 0;
        }
        problem = measure.problem;
        if (verb == PROVISION_LIST && (r = add_disks(call, pool, &problem, error)) < 0)
                return r;
        object = provision_object_pool(verb, pool, &measure, problem);
        (void)json_array_append_new(pools, object);
        return verb == PROVISION_LIST ? r : add_profiles(call, pool, json_object_get(object, "profiles"), error);
}

struct wanted {
        const char *id;
        struct pool_item *ret_item;
};

static int take_wanted(const struct pool_item *item, void *argument, struct error *error)
{
        const struct wanted *wanted = argument;

        (void)error;
        if (strcmp(item->id, wanted->id) != 0)
                return 0;
        *wanted->ret_item = *item;
        return 1;
}

/* A server is not asked: what the records say is what there is. */
static int look_at(const struct provision_call *call, const char *id, struct pool_item *ret_item, struct error *error)
{
        struct wanted wanted = { .id = id, .ret_item = ret_item };
        int r;

        if (!call->kind->remote)
                return call->kind->look(&call->config, &call->pool, id, ret_item, error);
        r = call->kind->each(&call->config, &call->pool, take_wanted, &wanted, error);
        return r < 0 ? r : r == 0 ? -ENOENT : 0;
}

/* One volume, whatever else its pool has. */
static int list_named(struct provision_call *call, struct error *error)
{
        cleanup_provision_record struct provision_record record = {};
        char name[OWNER_KEY_SIZE];
        struct pool_item item = {};
        int r = call->state.dir_fd < 0 ? -ENOENT
                                       : provision_record_read(&call->state, call->request->name, &record, error);

        if (r < 0)
                return r == -ENOENT ? 0 : r;
        put_name(record.pool, record.id, name);
        if ((r = provision_call_use_pool_of(call, &record, error)) == 0 &&
            (r = pool_check_answers(&call->config, &call->pool, error)) == 0 &&
            (r = look_at(call, record.id, &item, error)) == 0)
                (void)json_object_set_new(call->paths, name, found_object(&call->pool, &item));
        else if (r != -ENOENT) {
                log_say("cannot look at volume %s: %s", record.name, error_why(error));
                note_unread(call, record.pool, error);
        }
        return add_volume(&record, /* stem= */ "", call, error);
}

int list_pools(struct provision_call *call, struct error *error)
{
        struct pool asked = {};
        const json_t *ignored;
        int r;

        if (call->request->pool != NULL && (r = pool_find(&call->config, call->request->pool, &asked, error)) < 0)
                return r;
        if (call->request->verb == PROVISION_LIST && call->request->name == NULL && (r = owners_read(call, error)) < 0)
                return r;
        call->paths = json_object();
        call->unread = json_object();
        call->reply =
                provision_object_done(call->request->verb, &(struct provision_done){ .profiles = &call->profiles });
        if (call->request->verb != PROVISION_LIST && call->request->profile != NULL &&
            (r = profiles_find(&call->profiles, call->request->profile, &ignored, error)) < 0)
                return r;
        if (call->request->name != NULL)
                return list_named(call, error);
        r = call->request->pool != NULL ? add_pool(&asked, call, error)
                                        : pool_each(&call->config, add_pool, call, error);
        if (r == 0 && call->request->pool == NULL && call->request->verb == PROVISION_LIST)
                r = pool_each_implied(&call->config, add_pool, call, error);
        if (r < 0 || call->request->verb != PROVISION_LIST || call->state.dir_fd < 0)
                return r;
        return provision_record_each(&call->state, /* set_aside= */ true, add_volume, call, error);
}
