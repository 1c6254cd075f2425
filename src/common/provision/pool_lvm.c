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

#define DISKS_MAX 64
#define STRIPE_MIN_KIB 4 /* a page; powers of two only (lvcreate(8)) */
#define STRIPE_MAX_KIB (1 << 20)
#define MAPPER_NAME_MAX 100 /* of group and volume; DM_NAME_LEN is 128, and parts of volumes have suffixes */

/* How volumes of some type lie on disks. */
struct layout {
        const char *type;
        unsigned stripes; /* that hold data */
        unsigned copies;  /* of each */
        unsigned parity;  /* disks with neither */
        bool keeps_notes; /* an extent of metadata on each disk */
        const char *thin_pool;
        const char *stripe_size; /* NULL: lvm's own choice */
};

static unsigned number_of(const json_t *parameters, const char *key, unsigned otherwise)
{
        uint64_t number;
        const char *text = json_string_value(json_object_get(parameters, key));

        return text != NULL && text_number(text, DISKS_MAX, &number) && number > 0 ? (unsigned)number : otherwise;
}

static struct layout layout_of(const json_t *parameters)
{
        const char *type = json_string_value(json_object_get(parameters, "type")) ?: "linear";
        struct layout layout = { .type = type,
                                 .stripes = number_of(parameters, "stripes", 1),
                                 .copies = 1,
                                 .thin_pool = json_string_value(json_object_get(parameters, "thinpool")),
                                 .stripe_size = json_string_value(json_object_get(parameters, "stripesize")) };

        layout.keeps_notes = text_starts(type, "raid");
        if (strcmp(type, "striped") == 0)
                layout.stripes = number_of(parameters, "stripes", 2);
        else if (strcmp(type, "raid1") == 0 || strcmp(type, "mirror") == 0)
                layout.copies = 1 + number_of(parameters, "mirrors", 1);
        else if (strcmp(type, "raid5") == 0 || strcmp(type, "raid6") == 0) {
                layout.parity = type[4] == '5' ? 1 : 2;
                layout.stripes = number_of(parameters, "stripes", layout.parity + 1);
        } else if (strcmp(type, "raid10") == 0) {
                layout.stripes = number_of(parameters, "stripes", 2);
                layout.copies = 1 + number_of(parameters, "mirrors", 1);
        }
        return layout;
}

static int check_parameters(const json_t *parameters, struct error *error)
{
        static const char *const types[] = { "linear", "striped", "mirror", "raid1", "raid5",
                                             "raid6",  "raid10",  "thin",   NULL };
        static const char *const striped[] = { "striped", "raid5", "raid6", "raid10", NULL };
        static const char *const mirrored[] = { "mirror", "raid1", "raid10", NULL };
        const struct layout layout = layout_of(parameters);
        const char *key;
        const json_t *value;
        uint64_t number;

        json_object_foreach ((json_t *)parameters, key, value) {
                const char *text = json_string_value(value) ?: "";
                bool good =
                        (strcmp(key, "type") == 0 && text_among(text, types)) ||
                        (strcmp(key, "stripes") == 0 && text_among(layout.type, striped) &&
                         text_number(text, DISKS_MAX, &number) && number > 0) ||
                        (strcmp(key, "mirrors") == 0 && text_among(layout.type, mirrored) &&
                         text_number(text, DISKS_MAX, &number) && number > 0) ||
                        (strcmp(key, "stripesize") == 0 && text_among(layout.type, striped) &&
                         text_number(text, STRIPE_MAX_KIB, &number) && number >= STRIPE_MIN_KIB &&
                         (number & (number - 1)) == 0) ||
                        (strcmp(key, "thinpool") == 0 && strcmp(layout.type, "thin") == 0 && lvm_name_is_valid(text));

                if (!good)
                        return fail_because(error, EINVAL, "check parameters", key,
                                            "a volume of type %s in a pool of type lvm has no parameter \"%.64s\": "
                                            "\"%.64s\"",
                                            layout.type, key, text);
        }
        if (strcmp(layout.type, "thin") == 0 && layout.thin_pool == NULL)
                return fail_because(error, EINVAL, "check parameters", "thinpool",
                                    "a thin volume needs \"thinpool\", the name of a thin pool of the volume group");
        return 0;
}

/* The type, and over how many images it lies, or in which thin pool. POOL_LAYOUT_SIZE bytes. */
static void describe(const char *type, unsigned images, const char *thin_pool, char *ret_layout)
{
        if (thin_pool != NULL && thin_pool[0] != '\0')
                (void)snprintf(ret_layout, POOL_LAYOUT_SIZE, "%s in %s", type, thin_pool);
        else if (images > 1)
                (void)snprintf(ret_layout, POOL_LAYOUT_SIZE, "%s of %u", type, images);
        else
                (void)snprintf(ret_layout, POOL_LAYOUT_SIZE, "%s", type);
}

static bool fits(const struct pool_item *item, const json_t *parameters)
{
        const struct layout layout = layout_of(parameters);
        char wanted[POOL_LAYOUT_SIZE];

        describe(layout.type, (layout.stripes * layout.copies) + layout.parity, layout.thin_pool, wanted);
        return strcmp(item->layout, wanted) == 0;
}

static int place(const struct config *config, const struct pool *pool, char *ret_place, struct error *error)
{
        (void)config;
        (void)error;
        (void)snprintf(ret_place, POOL_PLACE_SIZE, "lvm:%s", pool->volume_group);
        return 0;
}

static uint64_t round_down(uint64_t bytes, uint64_t step)
{
        return bytes / step * step;
}

/* What a volume takes of its group: copies, parity, and what is noted of them (an extent for each image, or a log). */
static uint64_t taken_by(const struct lvm_volume *volume, uint64_t extent_bytes)
{
        uint64_t bytes = volume->size_bytes;

        if (strcmp(volume->type, "mirror") == 0)
                return (bytes * volume->stripes) + extent_bytes;
        if (!text_starts(volume->type, "raid") || volume->data_stripes == 0)
                return bytes;
        bytes = volume->copies > 1 ? bytes * volume->copies : bytes / volume->data_stripes * volume->stripes;
        return bytes + (volume->stripes * extent_bytes);
}

struct use {
        uint64_t extent_bytes;
        const char *thin_pool;
        uint64_t ours_bytes; /* what our volumes take of the group */
        uint64_t thin_pool_bytes;
        uint64_t thin_bytes; /* promised to volumes in that thin pool */
};

static int add_use(const struct lvm_volume *volume, void *argument, struct error *error)
{
        struct use *use = argument;

        (void)error;
        if (volume->ours && volume->thin_pool[0] == '\0')
                use->ours_bytes += taken_by(volume, use->extent_bytes);
        if (use->thin_pool != NULL && strcmp(volume->name, use->thin_pool) == 0 &&
            strcmp(volume->type, "thin-pool") == 0)
                use->thin_pool_bytes = volume->size_bytes;
        if (use->thin_pool != NULL && strcmp(volume->thin_pool, use->thin_pool) == 0)
                use->thin_bytes += volume->size_bytes;
        return 0;
}

/* Of one volume, which lies on as many disks at once as its layout says: the fullest of those is the limit. */
static int find_largest(const struct pool *pool, const struct layout *layout, const struct lvm_group *group,
                        uint64_t *ret_bytes, struct error *error)
{
        uint64_t free_bytes[DISKS_MAX] = {};
        unsigned disks = (layout->stripes * layout->copies) + layout->parity;
        uint64_t each_bytes;
        int count;

        if (disks == 1) {
                *ret_bytes = group->free_bytes;
                return 0;
        }
        count = lvm_free_bytes(pool->volume_group, free_bytes, DISKS_MAX, error);
        if (count < 0)
                return count;
        each_bytes = disks <= DISKS_MAX && (unsigned)count >= disks ? free_bytes[disks - 1] : 0;
        if (layout->keeps_notes)
                each_bytes = each_bytes > group->extent_bytes ? each_bytes - group->extent_bytes : 0;
        *ret_bytes = round_down(each_bytes, group->extent_bytes) * layout->stripes;
        return 0;
}

static int measure(const struct config *config, const struct pool *pool, const json_t *parameters,
                   struct pool_measure *ret_measure, struct error *error)
{
        const struct layout layout = layout_of(parameters);
        struct use use = { .thin_pool = layout.thin_pool };
        struct lvm_group group;
        uint64_t budget;
        uint64_t left;
        uint64_t notes;
        uint64_t copies = (uint64_t)layout.copies * (layout.stripes + layout.parity);
        int r;

        (void)config;
        if ((r = lvm_find_group(pool->volume_group, &group, error)) < 0)
                return r;
        use.extent_bytes = group.extent_bytes;
        if ((r = lvm_each(pool->volume_group, add_use, &use, error)) < 0)
                return r;
        budget = pool_share(pool, group.size_bytes);
        left = budget > use.ours_bytes ? budget - use.ours_bytes : 0;
        ret_measure->total_bytes = round_down(budget, group.extent_bytes);
        ret_measure->alignment_bytes = group.extent_bytes * layout.stripes;
        if (layout.thin_pool != NULL) {
                ret_measure->available_bytes =
                        use.thin_pool_bytes > use.thin_bytes ? use.thin_pool_bytes - use.thin_bytes : 0;
                ret_measure->available_bytes = round_down(ret_measure->available_bytes, group.extent_bytes);
                ret_measure->largest_bytes = ret_measure->available_bytes;
                return 0;
        }
        if ((r = find_largest(pool, &layout, &group, &ret_measure->largest_bytes, error)) < 0)
                return r;
        if (group.free_bytes < left)
                left = group.free_bytes;
        /* of what is there, as much as is data */
        ret_measure->available_bytes = round_down(left / copies * layout.stripes, group.extent_bytes * layout.stripes);
        notes = layout.keeps_notes ? copies * group.extent_bytes : layout.copies > 1 ? group.extent_bytes : 0;
        left = left > notes ? left - notes : 0;
        left = round_down(left / copies * layout.stripes, group.extent_bytes * layout.stripes);
        if (ret_measure->largest_bytes > left)
                ret_measure->largest_bytes = left;
        return 0;
}

/* As the device mapper has it. */
static size_t doubled_length(const char *name)
{
        size_t length = 0;

        for (; *name != '\0'; name++)
                length += *name == '-' ? 2 : 1;
        return length;
}

/* The volume's own name, where lvm takes it. */
static void choose_id(const struct pool *pool, const char *name, char *ret_id)
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
                                      "\"%.200s\" is no name for a volume of group %s", id, pool->volume_group);
}

/* Something of ours; -EACCES: somebody else's. */
static int find_ours(const struct pool *pool, const char *id, struct lvm_volume *ret_volume, struct error *error)
{
        int r = check_id(pool, id, error);

        if (r < 0 || (r = lvm_find(pool->volume_group, id, ret_volume, error)) < 0)
                return r;
        if (!ret_volume->ours)
                return fail_because(error, EEXIST, "find volume", id,
                                    "the volume %s of group %s is not of our making: it has not the tag " LVM_TAG, id,
                                    pool->volume_group);
        return 0;
}

/* Cut short, it may be there without what was on its blocks before having been wiped: so it is made anew. */
static int create(const struct config *config, const struct pool *pool, const struct provision_record *record,
                  struct error *error)
{
        const struct layout layout = layout_of(record->parameters);
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
        describe(volume->type, volume->stripes, volume->thin_pool, ret_item->layout);
        ret_item->ours = volume->ours;
        lvm_path(pool->volume_group, volume->name, ret_item->path);
}

/* A group whose disks are away has its volumes still; that of a region is made with the first. Errors: ENOENT, without
 * words, it is there; ENODEV. */
static int check_group(const struct pool *pool, struct error *error)
{
        struct lvm_group group;
        int r = pool->region[0] != '\0' ? 0 : lvm_find_group(pool->volume_group, &group, error);

        return r == -ENOENT ? fail_because(error, ENODEV, "find volume group", pool->volume_group,
                                           "there is no volume group \"%s\"", pool->volume_group)
               : r < 0      ? r
                            : -ENOENT;
}

static int look(const struct config *config, const struct pool *pool, const char *id, struct pool_item *ret_item,
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

static int check_unused(const struct config *config, const struct pool *pool, const char *id, struct error *error)
{
        struct lvm_volume volume;
        int r = lvm_find(pool->volume_group, id, &volume, error);

        (void)config;
        if (r < 0)
                return r == -ENOENT ? 0 : r;
        if (volume.open)
                return fail_because(error, EBUSY, "look for users", id, "the volume %s/%s is in use",
                                    pool->volume_group, id);
        if (volume.has_snapshots)
                return fail_because(error, EBUSY, "look for users", id,
                                    "the volume %s/%s has snapshots, which would go with it", pool->volume_group, id);
        return 0;
}

static int wipe(const struct config *config, const struct pool *pool, const char *id, struct error *error)
{
        struct block_device device;
        struct error ignored; /* the first failure is the one to tell */
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

/* One that was never active, or was cut short, is read the same way. */
static int is_blank(const struct config *config, const struct pool *pool, const char *id, struct error *error)
{
        struct block_device device;
        struct lvm_volume volume;
        struct error ignored;
        int r = find_ours(pool, id, &volume, error);

        (void)config;
        if (r < 0)
                return r == -EEXIST ? 0 : r; /* of what others made nothing is looked into */
        if (!volume.active && (r = lvm_activate(pool->volume_group, id, /* active= */ true, error)) < 0)
                return r;
        r = lvm_find_device(pool->volume_group, id, &device, error);
        if (r == 0)
                r = block_device_is_zeroed(&device, error);
        if (!volume.active)
                (void)lvm_activate(pool->volume_group, id, /* active= */ false,
                                   &ignored); /* as it was before, at best */
        return r;
}

/* Most thin pools give their blocks to others zeroed. */
static int erase(const struct config *config, const struct pool *pool, const char *id, bool begun, struct error *error)
{
        struct lvm_volume volume;
        struct lvm_volume thin_pool = {};
        int r = lvm_find(pool->volume_group, id, &volume, error);

        (void)begun;
        if (r < 0)
                return r == -ENOENT ? 0 : r;
        if (volume.thin_pool[0] != '\0' && (r = lvm_find(pool->volume_group, volume.thin_pool, &thin_pool, error)) < 0)
                return r == -ENOENT ? fail(error, ENOENT, "find thin pool", volume.thin_pool) : r;
        return thin_pool.zeroes ? 0 : wipe(config, pool, id, error);
}

static int remove_volume(const struct config *config, const struct pool *pool, const char *id, struct error *error)
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

static int each(const struct config *config, const struct pool *pool, pool_item_function *function, void *argument,
                struct error *error)
{
        struct walk walk = { .pool = pool, .function = function, .argument = argument };

        (void)config;
        return lvm_each(pool->volume_group, pass_on, &walk, error);
}

const struct pool_kind pool_lvm = { .type = "lvm",
                                    .place = place,
                                    .measure = measure,
                                    .choose_id = choose_id,
                                    .check_parameters = check_parameters,
                                    .fits = fits,
                                    .create = create,
                                    .look = look,
                                    .check_unused = check_unused,
                                    .is_blank = is_blank,
                                    .wipe = wipe,
                                    .erase = erase,
                                    .remove = remove_volume,
                                    .each = each };
