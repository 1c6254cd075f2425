/* SPDX-License-Identifier: Apache-2.0 */
/* pool_lvm.c - logical volumes in a volume group. What flexgraft makes has the tag "flexgraft". */
#include "pool/pool_lvm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "block/device.h"
#include "block/lvm.h"
#include "block/pmem.h"
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

int pool_lvm_locate(const struct config *config, const struct pool *pool, char *ret_location, struct error *error)
{
        (void)config;
        (void)error;
        (void)snprintf(ret_location, POOL_LOCATION_SIZE, "lvm:%s", pool->volume_group);
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
                     !text_starts(name, POOL_LVM_RESTORED) &&
                     doubled_length(pool->volume_group) + doubled_length(name) <= MAPPER_NAME_MAX;

        for (size_t i = 0; plain && i < sizeof parts / sizeof parts[0]; i++)
                plain = strstr(name, parts[i]) == NULL;
        if (plain)
                (void)text_copy(ret_id, PROVISION_ID_MAX, name); /* shorter */
        else
                (void)snprintf(ret_id, PROVISION_ID_MAX, "flexgraft-%016llx", (unsigned long long)hash_text(name));
}

static int check_id(const struct pool *pool, const char *id, struct error *error)
{
        return lvm_name_is_valid(id) && !text_starts(id, POOL_LVM_RESTORED)
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

/* Not a part of another one, and no thin pool, which goes with all that is in it. */
static bool is_volume(const struct lvm_volume *volume)
{
        return volume->public && strcmp(volume->type, "thin-pool") != 0;
}

/* What else has the id is no volume. Errors: ENOENT, without a message. */
static int find_volume(const struct pool *pool, const char *id, struct lvm_volume *ret_volume, struct error *error)
{
        int r = lvm_find(pool->volume_group, id, ret_volume, error);

        return r == 0 && !is_volume(ret_volume) ? -ENOENT : r;
}

static void item_of(const struct pool *pool, const struct lvm_volume *volume, struct pool_item *ret_item)
{
        *ret_item = (struct pool_item){ .size_bytes = volume->is_snapshot ? volume->origin_bytes : volume->size_bytes };
        if (volume->invalid)
                ret_item->problem = "the snapshot is lost: its room for changes of the volume was full";
        (void)text_copy(ret_item->id, sizeof ret_item->id, volume->name);
        (void)text_copy(ret_item->identity, sizeof ret_item->identity, volume->uuid);
        pool_lvm_layout_describe(volume->type, volume->stripes, volume->thin_pool, ret_item->layout);
        ret_item->ours = volume->ours;
        lvm_path(pool->volume_group, volume->name, ret_item->path);
}

/* While the volume is active, the kernel tells what lvm would have to be run for. Nothing, where it does not. */
static void describe_active(const struct pool *pool, const struct provision_record *record, struct pool_item *ret_item)
{
        struct lvm_volume made = { .ours = true };
        struct block_device device;
        struct error ignored;

        if (lvm_find_device(pool->volume_group, record->id, &device, &ignored) < 0 ||
            lvm_device_uuid(&device, made.uuid) < 0 || block_device_size(&device, &made.size_bytes, &ignored) < 0)
                return;
        (void)text_copy(made.name, sizeof made.name, record->id);
        item_of(pool, &made, ret_item);
}

/* The blocks may have been those of a volume that was not erased: a device that is not blank would not be formatted. */
static int wipe_new(const struct pool *pool, const char *id, struct error *error)
{
        struct block_device device;
        int r = lvm_find_device(pool->volume_group, id, &device, error);

        return r < 0 ? r : block_device_wipe(&device, error);
}

/* A killed process may have left one whose blocks were not wiped yet: it is made again. */
static int create(const struct config *config, const struct pool *pool, const struct provision_record *record,
                  struct pool_item *ret_item, struct error *error)
{
        const struct pool_lvm_layout layout = pool_lvm_layout_of(record->parameters);
        const bool thin = layout.thin_pool != NULL;
        char size[32];
        char stripes[16];
        char mirrors[16];
        char stripe_size[16];
        const char *words[16] = { thin ? "-V" : "-L", size };
        struct lvm_volume volume;
        int count = 2;
        int r = find_ours(pool, record->id, &volume, error);

        (void)config;
        if (r == 0)
                r = lvm_remove(pool->volume_group, &volume, error);
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
        if (layout.stripe_kib > 0) {
                (void)snprintf(stripe_size, sizeof stripe_size, "%uk", layout.stripe_kib);
                words[count++] = "--stripesize";
                words[count++] = stripe_size;
        }
        if (layout.copies > 1) {
                words[count++] = "--mirrors";
                words[count++] = mirrors;
        }
        if ((r = lvm_create(pool->volume_group, record->id, layout.type, words, error)) < 0)
                return r;
        /* those of a thin pool are zeroes, and take no room yet */
        if (!thin && (r = wipe_new(pool, record->id, error)) < 0)
                return r;
        describe_active(pool, record, ret_item);
        return lvm_put_asleep(pool->volume_group, record->id, error);
}

/* Without its group nothing can be said of a volume, unless the group is a region's, which is made with the first: then without its
 * region. Errors: ENOENT, without a message, it is there; ENODEV. */
static int check_group(const struct pool *pool, struct error *error)
{
        struct lvm_group group;
        int r = pool->region[0] != '\0'
                        ? pmem_look(pool->region, /* ret_region= */ NULL, /* function= */ NULL, NULL, error)
                        : lvm_find_group(pool->volume_group, &group, error);

        return r == -ENOENT ? fail_because(error, ENODEV, OPERATION_FIND_VOLUME_GROUP, pool->volume_group,
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
        r = find_volume(pool, id, &volume, error);
        if (r == -ENOENT)
                return check_group(pool, error);
        if (r == 0)
                item_of(pool, &volume, ret_item);
        return r;
}

int pool_lvm_check_unused(const struct config *config, const struct pool *pool, const char *id, struct error *error)
{
        struct lvm_volume volume;
        int r;

        (void)config;
        lvm_outdate(); /* others use it without a lock */
        r = lvm_find(pool->volume_group, id, &volume, error);
        if (r < 0)
                return r == -ENOENT ? 0 : r;
        if (volume.open)
                return fail_because(error, EBUSY, "look for users", id, "volume %s/%s is in use", pool->volume_group,
                                    id);
        return 0;
}

bool pool_lvm_is_looked_at(const struct config *config, const struct pool *pool, const char *id)
{
        struct block_device device;
        struct lvm_volume volume;
        struct error ignored; /* check_unused() tells it */

        (void)config;
        return lvm_find(pool->volume_group, id, &volume, &ignored) == 0 && volume.open && !volume.has_snapshots &&
               lvm_find_device(pool->volume_group, id, &device, &ignored) == 0 &&
               block_device_check_unused(&device, &ignored) == 0;
}

/* Of a snapshot that is not thin: the content that it keeps. */
int pool_lvm_wipe(const struct config *config, const struct pool *pool, const char *id, struct error *error)
{
        struct block_device device;
        struct lvm_volume volume;
        struct error ignored; /* the first failure is the one to report */
        int r;

        (void)config;
        if ((r = find_volume(pool, id, &volume, error)) < 0)
                return r == -ENOENT ? fail(error, ENOENT, "find volume", id) : r;
        if (volume.is_snapshot && (r = lvm_split(pool->volume_group, &volume, error)) < 0)
                return r;
        if ((r = lvm_activate(pool->volume_group, &volume, error)) < 0)
                return r;
        r = lvm_find_device(pool->volume_group, id, &device, error);
        if (r == 0)
                r = block_device_erase(&device, error);
        if (lvm_deactivate(pool->volume_group, id, r < 0 ? &ignored : error) < 0 && r == 0)
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
        if (volume.is_snapshot)
                return 0;
        if (!volume.active && (r = lvm_activate(pool->volume_group, &volume, error)) < 0)
                return r;
        r = lvm_find_device(pool->volume_group, id, &device, error);
        if (r == 0)
                r = block_device_is_zeroed(&device, error);
        if (!volume.active)
                (void)lvm_deactivate(pool->volume_group, id,
                                     &ignored); /* as it was before; a failure changes nothing */
        return r;
}

/* Most thin pools zero blocks before they give them to another volume. */
int pool_lvm_is_erased(const struct config *config, const struct pool *pool, const char *id, struct error *error)
{
        struct lvm_volume volume;
        struct lvm_volume thin_pool = {};
        int r = find_volume(pool, id, &volume, error);

        (void)config;
        if (r < 0)
                return r == -ENOENT ? 1 : r;
        if (volume.thin_pool[0] != '\0' && (r = lvm_find(pool->volume_group, volume.thin_pool, &thin_pool, error)) < 0)
                return r == -ENOENT ? fail(error, ENOENT, "find thin pool", volume.thin_pool) : r;
        return thin_pool.zeroes;
}

int pool_lvm_erase(const struct config *config, const struct pool *pool, const char *id, bool begun,
                   struct error *error)
{
        int r = pool_lvm_is_erased(config, pool, id, error);

        (void)begun;
        return r != 0 ? (r < 0 ? r : 0) : pool_lvm_wipe(config, pool, id, error);
}

static int remove_named(const struct pool *pool, const char *id, struct error *error)
{
        struct lvm_volume volume;
        int r = find_volume(pool, id, &volume, error);

        if (r < 0)
                return r == -ENOENT ? 0 : r;
        return lvm_remove(pool->volume_group, &volume, error);
}

/* One that others made stays. */
int pool_lvm_remove_restored(const struct pool *pool, const char *id, struct error *error)
{
        char restored[PROVISION_ID_MAX];
        struct lvm_volume volume;
        int r;

        pool_lvm_put_restored(id, restored);
        r = lvm_find(pool->volume_group, restored, &volume, error);
        if (r < 0 || !volume.ours)
                return r == -ENOENT ? 0 : r;
        return lvm_remove(pool->volume_group, &volume, error);
}

int pool_lvm_remove(const struct config *config, const struct pool *pool, const char *id, struct error *error)
{
        int r = check_id(pool, id, error);

        (void)config;
        if (r < 0 || (r = pool_lvm_remove_restored(pool, id, error)) < 0)
                return r;
        return remove_named(pool, id, error);
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

        if (!is_volume(volume) || text_starts(volume->name, POOL_LVM_RESTORED))
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

static const struct hint hints[] = {
        { OPERATION_FIND_VOLUME_GROUP, 0, "vgs lists the volume groups of this node, pvs their disks" },
        {},
};

const struct pool_kind pool_lvm = { .type = "lvm",
                                    .needs = NEED(LVM) | NEED(DEVICE_MAPPER),
                                    .hints = hints,
                                    .keys = keys,
                                    .parameters = pool_lvm_parameters,
                                    .parameter_needs = pool_lvm_layout_needs,
                                    .begin = lvm_begin,
                                    .end = lvm_end,
                                    .hold = lvm_hold,
                                    .release = lvm_release,
                                    .read = read_keys,
                                    .locate = pool_lvm_locate,
                                    .measure = pool_lvm_layout_measure,
                                    .choose_id = pool_lvm_choose_id,
                                    .check_parameters = pool_lvm_layout_check,
                                    .fits = pool_lvm_layout_fits,
                                    .note_layout = pool_lvm_layout_note,
                                    .create = create,
                                    .look = pool_lvm_look,
                                    .check_unused = pool_lvm_check_unused,
                                    .check_removable = pool_lvm_check_removable,
                                    .is_looked_at = pool_lvm_is_looked_at,
                                    .is_blank = pool_lvm_is_blank,
                                    .wipe = pool_lvm_wipe,
                                    .erase = pool_lvm_erase,
                                    .is_erased = pool_lvm_is_erased,
                                    .can_share = pool_lvm_can_share,
                                    .measure_snapshot = pool_lvm_measure_snapshot,
                                    .share = pool_lvm_share,
                                    .resume = pool_lvm_resume,
                                    .copy = pool_lvm_copy,
                                    .open_content = pool_lvm_open_content,
                                    .close_content = pool_lvm_close_content,
                                    .restore = pool_lvm_restore,
                                    .remove = pool_lvm_remove,
                                    .each = pool_lvm_each };
