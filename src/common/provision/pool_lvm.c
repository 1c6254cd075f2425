/* SPDX-License-Identifier: Apache-2.0 */
#include "provision/pool_lvm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "block/lvm.h"
#include "state/volume_record.h"

#define MAPPER_NAME_MAX 100 /* of group and volume; DM_NAME_LEN is 128, and parts of volumes have suffixes */

bool pool_lvm_is_group(const json_t *value)
{
        const char *group = json_string_value(value);

        return group != NULL && group[0] != '\0' && group[0] != '-' && strchr(group, '/') == NULL &&
               strlen(group) < sizeof((struct pool *)0)->volume_group;
}

static const struct file_key keys[] = {
        { "volumeGroup", "a volume group's name", pool_lvm_is_group, true, NULL, "Volume group that has the volumes.",
          NULL },
        {},
};

/* The name is checked, and fits. */
static const char *read_keys(const json_t *file, struct pool *pool)
{
        (void)text_copy(pool->volume_group, sizeof pool->volume_group,
                        json_string_value(json_object_get(file, "volumeGroup")));
        return NULL;
}

int pool_lvm_place(const struct config *config, const struct pool *pool, char *ret_place, struct error *error)
{
        (void)config;
        (void)error;
        (void)snprintf(ret_place, POOL_PLACE_SIZE, "lvm:%s", pool->volume_group);
        return 0;
}

/* In a device mapper name, hyphens are doubled. */
static size_t doubled_length(const char *name)
{
        size_t length = 0;

        for (; *name != '\0'; name++)
                length += *name == '-' ? 2 : 1;
        return length;
}

/* The volume's own name, where lvm accepts it. */
void pool_lvm_choose_id(const struct pool *pool, const char *name, char *ret_id)
{
        static const char *const parts[] = { "_cdata",  "_cmeta",  "_corig", "_mlog",  "_mimage",  "_pmspare",
                                             "_rimage", "_rmeta",  "_tdata", "_tmeta", "_vorigin", "_vdata",
                                             "_imeta",  "_wcorig", "_cvol",  "lvol" };
        bool plain = lvm_name_is_valid(name) && !text_starts(name, "snapshot") && !text_starts(name, "pvmove") &&
                     doubled_length(pool->volume_group) + doubled_length(name) <= MAPPER_NAME_MAX;

        for (size_t i = 0; plain && i < sizeof parts / sizeof parts[0]; i++)
                plain = strstr(name, parts[i]) == NULL;
        if (plain)
                (void)text_copy(ret_id, PROVISION_ID_MAX, name); /* shorter */
        else
                (void)snprintf(ret_id, PROVISION_ID_MAX, "flexgraft-%016llx",
                               (unsigned long long)hash_bytes(HASH_SEED, name, strlen(name)));
}

static int check_id(const struct pool *pool, const char *id, struct error *error)
{
        return lvm_name_is_valid(id)
                       ? 0
                       : fail_because(error, EINVAL, "find volume", id,
                                      "\"%.200s\" cannot be the name of a volume of group %s", id, pool->volume_group);
}

/* A volume that flexgraft made; EEXIST: something else. */
static int find_ours(const struct pool *pool, const char *id, struct lvm_volume *ret_volume, struct error *error)
{
        int r = check_id(pool, id, error);

        if (r < 0 || (r = lvm_find(pool->volume_group, id, ret_volume, error)) < 0)
                return r;
        if (!ret_volume->ours)
                return fail_because(
                        error, EEXIST, "find volume", id,
                        "volume %s of group %s was not made by flexgraft: it does not have the tag " LVM_TAG, id,
                        pool->volume_group);
        return 0;
}

/* A killed process may have left one whose blocks were not wiped yet: it is made again. */
static int create(const struct config *config, const struct pool *pool, const struct provision_record *record,
                  struct error *error)
{
        const struct pool_lvm_layout layout = pool_lvm_layout_of(record->parameters);
        const bool thin = layout.thin_pool != NULL;
        char size[32];
        char stripes[16];
        char mirrors[16];
        const char *words[16] = { "--type", layout.type, thin ? "-V" : "-L", size };
        struct lvm_volume volume;
        int count = 4;
        int r = find_ours(pool, record->id, &volume, error);

        (void)config;
        if (r == 0)
                r = lvm_remove(pool->volume_group, record->id, error);
        if (r < 0 && r != -ENOENT)
                return r;
        (void)snprintf(size, sizeof size, "%llub", (unsigned long long)record->size_bytes);
        (void)snprintf(stripes, sizeof stripes, "%u", layout.stripes);
        (void)snprintf(mirrors, sizeof mirrors, "%u", layout.copies - 1);
        if (thin) {
                words[count++] = "--thinpool";
                words[count++] = layout.thin_pool;
        }
        if (layout.stripes > 1 || layout.parity > 0) {
                words[count++] = "--stripes";
                words[count++] = stripes;
        }
        if (layout.stripe_size != NULL) {
                words[count++] = "--stripesize";
                words[count++] = layout.stripe_size;
        }
        if (layout.copies > 1) {
                words[count++] = "--mirrors";
                words[count++] = mirrors;
        }
        if ((r = lvm_create(pool->volume_group, record->id, words, error)) < 0)
                return r;
        return lvm_activate(pool->volume_group, record->id, /* active= */ false, error);
}

static void item_of(const struct pool *pool, const struct lvm_volume *volume, struct pool_item *ret_item)
{
        *ret_item = (struct pool_item){ .size_bytes = volume->size_bytes };
        (void)text_copy(ret_item->id, sizeof ret_item->id, volume->name);
        (void)text_copy(ret_item->identity, sizeof ret_item->identity, volume->uuid);
        pool_lvm_layout_describe(volume->type, volume->stripes, volume->thin_pool, ret_item->layout);
        ret_item->ours = volume->ours;
        lvm_path(pool->volume_group, volume->name, ret_item->path);
}

/* Without its group nothing can be said of a volume, unless the group is a region's, which is made with the first.
 * Errors: ENOENT, without a message, the group is there; ENODEV. */
static int check_group(const struct pool *pool, struct error *error)
{
        struct lvm_group group;
        int r = pool->region[0] != '\0' ? 0 : lvm_find_group(pool->volume_group, &group, error);

        return r == -ENOENT ? fail_because(error, ENODEV, "find volume group", pool->volume_group,
                                           "there is no volume group \"%s\"", pool->volume_group)
               : r < 0      ? r
                            : -ENOENT;
}

int pool_lvm_look(const struct config *config, const struct pool *pool, const char *id, struct pool_item *ret_item,
                  struct error *error)
{
        struct lvm_volume volume;
        int r = check_id(pool, id, error);

        (void)config;
        if (r < 0)
                return r;
        r = lvm_find(pool->volume_group, id, &volume, error);
        if (r == -ENOENT)
                return check_group(pool, error);
        if (r == 0)
                item_of(pool, &volume, ret_item);
        return r;
}

int pool_lvm_check_unused(const struct config *config, const struct pool *pool, const char *id, struct error *error)
{
        struct lvm_volume volume;
        int r = lvm_find(pool->volume_group, id, &volume, error);

        (void)config;
        if (r < 0)
                return r == -ENOENT ? 0 : r;
        if (volume.open)
                return fail_because(error, EBUSY, "look for users", id, "volume %s/%s is in use", pool->volume_group,
                                    id);
        if (volume.has_snapshots)
                return fail_because(error, EBUSY, "look for users", id,
                                    "volume %s/%s has snapshots, which would be removed with it", pool->volume_group,
                                    id);
        return 0;
}

int pool_lvm_wipe(const struct config *config, const struct pool *pool, const char *id, struct error *error)
{
        struct block_device device;
        struct error ignored; /* the first failure is the one to report */
        int r;

        (void)config;
        if ((r = lvm_activate(pool->volume_group, id, /* active= */ true, error)) < 0)
                return r;
        r = lvm_find_device(pool->volume_group, id, &device, error);
        if (r == 0)
                r = block_device_erase(&device, error);
        if (lvm_activate(pool->volume_group, id, /* active= */ false, r < 0 ? &ignored : error) < 0 && r == 0)
                return -error->errnum;
        return r;
}

/* One that is not active is activated meanwhile. */
int pool_lvm_is_blank(const struct config *config, const struct pool *pool, const char *id, struct error *error)
{
        struct block_device device;
        struct lvm_volume volume;
        struct error ignored;
        int r = find_ours(pool, id, &volume, error);

        (void)config;
        if (r < 0)
                return r == -EEXIST ? 0 : r; /* what others made is not read */
        if (!volume.active && (r = lvm_activate(pool->volume_group, id, /* active= */ true, error)) < 0)
                return r;
        r = lvm_find_device(pool->volume_group, id, &device, error);
        if (r == 0)
                r = block_device_is_zeroed(&device, error);
        if (!volume.active)
                (void)lvm_activate(pool->volume_group, id, /* active= */ false,
                                   &ignored); /* as it was before; a failure changes nothing */
        return r;
}

/* Most thin pools zero blocks before they give them to another volume. */
int pool_lvm_erase(const struct config *config, const struct pool *pool, const char *id, bool begun,
                   struct error *error)
{
        struct lvm_volume volume;
        struct lvm_volume thin_pool = {};
        int r = lvm_find(pool->volume_group, id, &volume, error);

        (void)begun;
        if (r < 0)
                return r == -ENOENT ? 0 : r;
        if (volume.thin_pool[0] != '\0' && (r = lvm_find(pool->volume_group, volume.thin_pool, &thin_pool, error)) < 0)
                return r == -ENOENT ? fail(error, ENOENT, "find thin pool", volume.thin_pool) : r;
        return thin_pool.zeroes ? 0 : pool_lvm_wipe(config, pool, id, error);
}

int pool_lvm_remove(const struct config *config, const struct pool *pool, const char *id, struct error *error)
{
        struct lvm_volume volume;
        int r = check_id(pool, id, error);

        (void)config;
        if (r < 0)
                return r;
        r = lvm_find(pool->volume_group, id, &volume, error);
        if (r < 0)
                return r == -ENOENT ? 0 : r;
        return lvm_remove(pool->volume_group, id, error);
}

struct walk {
        const struct pool *pool;
        pool_item_function *function;
        void *argument;
};

static int pass_on(const struct lvm_volume *volume, void *argument, struct error *error)
{
        const struct walk *walk = argument;
        struct pool_item item;

        if (!volume->public || strcmp(volume->type, "thin-pool") == 0)
                return 0;
        item_of(walk->pool, volume, &item);
        return walk->function(&item, walk->argument, error);
}

int pool_lvm_each(const struct config *config, const struct pool *pool, pool_item_function *function, void *argument,
                  struct error *error)
{
        struct walk walk = { .pool = pool, .function = function, .argument = argument };

        (void)config;
        return lvm_each(pool->volume_group, pass_on, &walk, error);
}

const struct pool_kind pool_lvm = { .type = "lvm",
                                    .keys = keys,
                                    .parameters = pool_lvm_parameters,
                                    .begin = lvm_begin,
                                    .end = lvm_end,
                                    .read = read_keys,
                                    .place = pool_lvm_place,
                                    .measure = pool_lvm_layout_measure,
                                    .choose_id = pool_lvm_choose_id,
                                    .check_parameters = pool_lvm_layout_check,
                                    .fits = pool_lvm_layout_fits,
                                    .create = create,
                                    .look = pool_lvm_look,
                                    .check_unused = pool_lvm_check_unused,
                                    .is_blank = pool_lvm_is_blank,
                                    .wipe = pool_lvm_wipe,
                                    .erase = pool_lvm_erase,
                                    .remove = pool_lvm_remove,
                                    .each = pool_lvm_each };
