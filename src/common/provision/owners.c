/* SPDX-License-Identifier: Apache-2.0 */
#include "provision/call.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/json.h"
#include "base/reply.h"
#include "base/text.h"
#include "pool/pool_kind.h"
#include "pool/record.h"
#include "provision/disk_uses.h"
#include "state/uses.h"
#include "state/volume_record.h"

#define LOOKED_AT_TRIES 20 /* a tenth of a second each */
#define LOOKED_AT_WAIT_MS 100

static int find_location(const struct provision_call *call, const char *pool_name, char *ret_location)
{
        struct error ignored;
        struct pool pool;
        int r = pool_find(&call->config, pool_name, &pool, &ignored);

        if (r < 0 || (r = pool_check_answers(&call->config, &pool, &ignored)) < 0)
                return r;
        return pool.kind->locate_disks != NULL ? pool.kind->locate_disks(&call->config, &pool, ret_location, &ignored)
                                               : pool.kind->locate(&call->config, &pool, ret_location, &ignored);
}

#define UNKNOWN "pool:" /* and the pool's name: it cannot be read */
#define SAID "said:"    /* and what a pool's file said of where it is */

/* Where a pool is. One that cannot be read counts by its name. */
static void put_location(const struct provision_call *call, const char *pool_name,
                         char ret_location[POOL_LOCATION_SIZE])
{
        const char *known = json_string_value(json_object_get(call->locations, pool_name));

        if (known != NULL) {
                (void)text_copy(ret_location, POOL_LOCATION_SIZE, known);
                return;
        }
        if (find_location(call, pool_name, ret_location) < 0)
                (void)snprintf(ret_location, POOL_LOCATION_SIZE, UNKNOWN "%s", pool_name);
        (void)json_object_set_new(call->locations, pool_name,
                                  json_string(ret_location)); /* else it is looked up again next time */
}

/* The key of a disk, the same in all pools that have it. */
static void put_key(const struct provision_call *call, const char *pool_name, const char *id, char *ret_key)
{
        char location[POOL_LOCATION_SIZE];

        put_location(call, pool_name, location);
        (void)snprintf(ret_key, OWNER_KEY_SIZE, "%s/%s", location, id);
}

/* That of a volume's. Its pool's file may be called otherwise by now: then what that said tells where the pool is. */
static void put_volume_key(const struct provision_call *call, const struct provision_record *record, char *ret_key)
{
        char location[POOL_LOCATION_SIZE];

        put_location(call, record->pool, location);
        if (text_starts(location, UNKNOWN) && record->location[0] != '\0')
                (void)snprintf(ret_key, OWNER_KEY_SIZE, SAID "%s/%s", record->location, record->id);
        else
                (void)snprintf(ret_key, OWNER_KEY_SIZE, "%s/%s", location, record->id);
}

/* What put_volume_key() makes of a disk of this pool if the pool of its volume cannot be read. */
static void put_said_key(const struct provision_call *call, const char *pool_name, const char *id, char *ret_key)
{
        char location[PROVISION_LOCATION_MAX] = "";
        struct error ignored;
        struct pool pool;

        if (pool_find(&call->config, pool_name, &pool, &ignored) == 0)
                pool_put_location(&call->config, &pool, location);
        (void)snprintf(ret_key, OWNER_KEY_SIZE, SAID "%s/%s", location, id);
}

static int note_owner(const struct provision_record *record, const char *stem, void *argument, struct error *error)
{
        struct provision_call *call = argument;
        char key[OWNER_KEY_SIZE];

        (void)error;
        if (record != NULL)
                put_volume_key(call, record, key);
        else /* of another version: see stem_length() */
                (void)snprintf(key, sizeof key, "stem:%.255s", stem);
        call->strays = call->strays || text_starts(key, SAID);
        (void)json_object_set_new(call->owners, key, reply_printable(record != NULL ? record->name : stem));
        return 0;
}

/* Collect every disk that is a volume. */
int owners_read(struct provision_call *call, struct error *error)
{
        json_decref(call->owners);
        json_decref(call->locations);
        call->owners = json_object();
        call->locations = json_object();
        call->strays = false;
        return call->state.dir_fd < 0
                       ? 0
                       : provision_record_each(&call->state, /* set_aside= */ true, note_owner, call, error);
}

/* Of a disk's id, what a record of another version most likely has as its file's name: the part before the suffix. */
static int stem_length(const char *id)
{
        const char *end = strrchr(id, '.');

        return end != NULL ? (int)(end - id) : (int)strlen(id);
}

/* The volume that a disk is; NULL: none. After owners_read(). */
const char *owners_find(const struct provision_call *call, const char *pool, const char *id)
{
        char key[OWNER_KEY_SIZE];
        const char *name;

        put_key(call, pool, id, key);
        name = json_string_value(json_object_get(call->owners, key));
        if (name == NULL && call->strays) {
                put_said_key(call, pool, id, key);
                name = json_string_value(json_object_get(call->owners, key));
        }
        if (name != NULL)
                return name;
        (void)snprintf(key, sizeof key, "stem:%.*s", stem_length(id), id);
        return json_string_value(json_object_get(call->owners, key));
}

/* ---- one disk, without reading all records */

struct look {
        struct provision_call *call;
        char key[OWNER_KEY_SIZE];
        const char *pool;
        const char *id;
        char *ret_owner;
};

static int match(const struct provision_record *record, const char *stem, void *argument, struct error *error)
{
        struct look *look = argument;
        char key[OWNER_KEY_SIZE];
        char said[OWNER_KEY_SIZE] = "";

        (void)error;
        if (record != NULL)
                put_volume_key(look->call, record, key);
        if (record != NULL && text_starts(key, SAID))
                put_said_key(look->call, look->pool, look->id, said);
        if (record != NULL && strcmp(key, look->key) != 0 && strcmp(key, said) != 0)
                return 0;
        (void)text_copy(look->ret_owner, PROVISION_NAME_MAX, record != NULL ? record->name : stem);
        return 1;
}

/*
 * The record that most likely has the disk, by its file's name. 1 it has; 0; or -EPROTONOSUPPORT: it is of another
 * version, and has no entry in the index.
 */
static int guess(struct look *look)
{
        cleanup_provision_record struct provision_record record = {};
        char file[NAME_MAX + sizeof RECORD_SUFFIX];
        struct error ignored;
        int r;

        (void)snprintf(file, sizeof file, "%.*s" RECORD_SUFFIX, stem_length(look->id), look->id);
        r = record_read(&look->call->state, &provision_record_table, file, &record, &ignored);
        if (r < 0)
                return r == -EPROTONOSUPPORT ? r : 0;
        return match(&record, /* stem= */ NULL, look, &ignored);
}

int owners_look(struct provision_call *call, const char *pool, const char *id, char *ret_owner, struct error *error)
{
        struct look look = { .call = call, .pool = pool, .id = id, .ret_owner = ret_owner };
        bool unreadable;
        int r;

        ret_owner[0] = '\0';
        if (call->state.dir_fd < 0)
                return 0;
        if (call->locations == NULL)
                call->locations = json_object();
        put_key(call, pool, id, look.key);
        if ((r = guess(&look)) > 0)
                return r;
        unreadable = r == -EPROTONOSUPPORT;
        r = record_find_each(&call->state, id, match, &look, error);
        if (r != 0 || !unreadable)
                return r;
        (void)snprintf(ret_owner, PROVISION_NAME_MAX, "%.*s", stem_length(id), id);
        return 1;
}

/* ---- directories in directories */

/* All records are read: only for a directory that somebody names. */
static int check_none_below(struct provision_call *call, const char *id, struct error *error)
{
        char prefix[OWNER_KEY_SIZE];
        const char *key;
        json_t *name;
        int r = owners_read(call, error);

        if (r < 0)
                return r;
        put_key(call, call->pool.name, id, prefix);
        json_object_foreach (call->owners, key, name)
                if (text_starts(key, prefix) && key[strlen(prefix)] == '/')
                        return fail_because(error, EEXIST, "look for volumes", id, "the volume \"%.200s\" is in it",
                                            json_string_value(name));
        return 0;
}

int owners_check_apart(struct provision_call *call, const char *id, bool new, struct error *error)
{
        char outer[PROVISION_ID_MAX];
        char owner[PROVISION_NAME_MAX];

        for (const char *slash = strchr(id, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
                int r;

                (void)snprintf(outer, sizeof outer, "%.*s", (int)(slash - id), id);
                if ((r = owners_look(call, call->pool.name, outer, owner, error)) < 0)
                        return r;
                if (r > 0)
                        return fail_because(error, EEXIST, "look for volumes", id,
                                            "it would be in the volume \"%.200s\"", owner);
        }
        return new ? 0 : check_none_below(call, id, error);
}

/* What to ask the list of uses about a disk; nothing for a device that is not there: it is not active. */
static int put_uses(const struct pool_item *item, char *ret_keys, struct error *error)
{
        cleanup_close int fd = -EBADF;
        struct stat st;

        ret_keys[0] = '\0';
        if (item->path[0] != '/') /* "server:/share/id": delete.c asks by the volume's name */
                return 0;
        if (stat(item->path, &st) < 0)
                return errno == ENOENT ? 0 : fail(error, errno, "stat", item->path);
        if (S_ISBLK(st.st_mode))
                return disk_uses_add_device(ret_keys, st.st_rdev, BLOCK_STACK_LOOPS, error);
        if (!S_ISREG(st.st_mode)) {
                use_keys_add_file(ret_keys, st.st_dev, st.st_ino);
                return 0;
        }
        fd = file_open_leased(AT_FDCWD, item->path, O_RDONLY, 0);
        if (fd < 0)
                return fd == -ENOENT ? 0 : fail(error, -fd, "open", item->path);
        return disk_uses_add_image(ret_keys, fd, error);
}

/* That no pod and no container uses a disk, and nothing else does. */
int owners_check_unused(const struct provision_call *call, const struct pool *pool, const char *id, struct error *error)
{
        struct pool_item item;
        char keys[USE_KEYS_SIZE];
        int r = pool->kind->look(&call->config, pool, id, &item, error);

        if (r < 0)
                return r == -ENOENT ? 0 : r;
        if ((r = put_uses(&item, keys, error)) < 0 ||
            (r = uses_release_ended(call->config.state_dir, keys, /* locked_id= */ NULL, error)) < 0 ||
            (r = uses_check_none(call->config.state_dir, keys, /* except= */ NULL, "look for users", item.path,
                                 error)) < 0)
                return r;
        return pool->kind->check_unused != NULL ? pool->kind->check_unused(&call->config, pool, id, error) : 0;
}

/*
 * A device that another process looks at (udev, blkid, losetup) is detached only when that process closes it. Others may
 * use the pool meanwhile.
 */
int owners_wait_looked_at(struct provision_call *call, const char *id, unsigned *tries, struct error *error)
{
        int r;

        if (*tries >= LOOKED_AT_TRIES || call->kind->is_looked_at == NULL ||
            !call->kind->is_looked_at(&call->config, &call->pool, id))
                return 0;
        ++*tries;
        provision_call_unlock_pool(call);
        clock_pause_ms(LOOKED_AT_WAIT_MS);
        r = provision_call_lock_pool(call, error);
        return r < 0 ? r : 1;
}

int owners_await_unused(struct provision_call *call, const char *id, struct error *error)
{
        unsigned tries = 0;
        int again = 0;
        int r;

        do
                r = owners_check_unused(call, &call->pool, id, error);
        while (r == -EBUSY && (again = owners_wait_looked_at(call, id, &tries, error)) > 0);
        return again < 0 ? again : r;
}

int owners_put_attached(const struct provision_call *call, const struct provision_record *record, const char *path,
                        char *keys, struct error *error)
{
        cleanup_volume_record struct volume_record attached = {};
        int r = volume_record_peek(call->config.state_dir, record->name, /* driver= */ "", &attached, error);

        if (r < 0)
                return r == -ENOENT ? 0 : r;
        if (attached.device_number == 0 || !volume_record_has(&attached, record->pool_type, path) ||
            !volume_record_is_of_this_boot(&attached))
                return 0;
        if ((r = disk_uses_add_device(keys, attached.device_number, 0, error)) < 0)
                return r;
        use_keys_add_device(keys, attached.filesystem);
        return 0;
}

int owners_check_detached(const struct provision_call *call, const struct provision_record *record, struct error *error)
{
        char keys[USE_KEYS_SIZE] = "";
        int r = owners_put_attached(call, record, /* path= */ NULL, keys, error);

        if (r < 0 || keys[0] == '\0')
                return r;
        if ((r = uses_release_ended(call->config.state_dir, keys, /* locked_id= */ NULL, error)) < 0)
                return r;
        return uses_check_none(call->config.state_dir, keys, /* except= */ NULL, "look for users", record->name, error);
}
