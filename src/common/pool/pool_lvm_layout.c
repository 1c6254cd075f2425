/* SPDX-License-Identifier: Apache-2.0 */
#include "pool/pool_lvm.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json_value.h"
#include "base/text.h"
#include "block/lvm.h"
#include "pool/pool.h"

#define DISKS_MAX 64
#define STRIPE_MIN_KIB 4 /* a page; powers of two only (lvcreate(8)) */
#define STRIPE_MAX_KIB (1 << 20)
#define SNAPSHOT_PERCENT 100

static unsigned number_of(const json_t *parameters, const char *key, unsigned otherwise)
{
        uint64_t number;
        const char *text = json_string_value(json_object_get(parameters, key));

        return text != NULL && text_number(text, DISKS_MAX, &number) && number > 0 ? (unsigned)number : otherwise;
}

/* "64", in KiB, or with a unit "64k", "64Ki", "1m"; 0: it is no power of two in range. */
static unsigned stripe_kib(const json_t *value)
{
        const char *text = json_string_value(value);
        struct error ignored;
        char bytes[24];
        uint64_t kib;

        if (text == NULL)
                return 0;
        if (text[strspn(text, "0123456789")] == '\0') {
                if (!text_number(text, STRIPE_MAX_KIB, &kib))
                        return 0;
        } else {
                if (json_value_size("stripesize", value, /* percent= */ false, bytes, sizeof bytes, &ignored) < 0 ||
                    !text_number(bytes, (uint64_t)STRIPE_MAX_KIB << 10, &kib))
                        return 0;
                kib /= 1024; /* the unit is a multiple of it */
        }
        return kib >= STRIPE_MIN_KIB && (kib & (kib - 1)) == 0 ? (unsigned)kib : 0;
}

/* "25%"; 0: it is no such number. */
static unsigned percent_of(const json_t *value)
{
        const char *text = json_string_value(value);
        char digits[4];
        uint64_t number;
        size_t length = text != NULL ? strlen(text) : 0;

        if (length < 2 || length > sizeof digits || text[length - 1] != '%')
                return 0;
        (void)snprintf(digits, sizeof digits, "%.*s", (int)(length - 1), text);
        return text_number(digits, SNAPSHOT_PERCENT, &number) ? (unsigned)number : 0;
}

struct pool_lvm_layout pool_lvm_layout_of(const json_t *parameters)
{
        const char *type = json_string_value(json_object_get(parameters, "type")) ?: "linear";
        struct pool_lvm_layout layout = { .type = type,
                                          .stripes = number_of(parameters, "stripes", 1),
                                          .copies = 1,
                                          .thin_pool = json_string_value(json_object_get(parameters, "thinpool")),
                                          .stripe_kib = stripe_kib(json_object_get(parameters, "stripesize")),
                                          .snapshot_percent = percent_of(json_object_get(parameters, "snapshotsize")) };

        if (layout.snapshot_percent == 0)
                layout.snapshot_percent = SNAPSHOT_PERCENT;
        layout.has_metadata = text_starts(type, "raid");
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

static const char *const types[] = { "linear", "striped", "mirror", "raid1", "raid5", "raid6", "raid10", "thin", NULL };

static bool is_type(const json_t *value)
{
        return json_is_string(value) && text_among(json_string_value(value), types);
}

static bool is_count(const json_t *value)
{
        const char *text = json_string_value(value);
        uint64_t number;

        return text != NULL && text_number(text, DISKS_MAX, &number) && number > 0;
}

static bool is_stripe_size(const json_t *value)
{
        return stripe_kib(value) > 0;
}

static bool is_percent(const json_t *value)
{
        return percent_of(value) > 0;
}

static bool is_name(const json_t *value)
{
        return json_is_string(value) && lvm_name_is_valid(json_string_value(value));
}

const struct file_key pool_lvm_parameters[] = {
        { "type", "linear, striped, mirror, raid1, raid5, raid6, raid10 or thin", is_type, false, "linear",
          "Layout of the volume, as in lvcreate(8).", NULL },
        { "stripes", "a number from 1 to 64, as a string", is_count, false, "the fewest that the type can have",
          "Number of stripes, for striped, raid5, raid6 and raid10.", NULL },
        { "mirrors", "a number from 1 to 64, as a string", is_count, false, "1",
          "Number of further copies, for mirror, raid1 and raid10.", NULL },
        { "stripesize", "a power of two of KiB, from \"4k\" to \"1g\"", is_stripe_size, false, "lvm's own",
          "Size of a stripe, with k, m or g, or in KiB; for striped, raid5, raid6 and raid10.", NULL },
        { "thinpool", "a volume's name", is_name, false, NULL,
          "Thin pool of the volume group, for thin. Its volumes together are at most as large as it is.", NULL },
        { "snapshotsize", "a percentage from \"1%\" to \"100%\"", is_percent, false, "100%",
          "How much of the volume can change before a snapshot of it is lost; not for thin.", NULL },
        {},
};

need_set pool_lvm_layout_needs(const json_t *parameters)
{
        return lvm_type_needs(pool_lvm_layout_of(parameters).type);
}

int pool_lvm_layout_check(const json_t *parameters, struct error *error)
{
        static const char *const striped[] = { "striped", "raid5", "raid6", "raid10", NULL };
        static const char *const mirrored[] = { "mirror", "raid1", "raid10", NULL };
        static const char *const thin[] = { "thin", NULL };
        static const char *const others[] = {
                "linear", "striped", "mirror", "raid1", "raid5", "raid6", "raid10", NULL
        };
        static const struct {
                const char *key;
                const char *const *types; /* that it is for */
        } rules[] = { { "stripes", striped },
                      { "stripesize", striped },
                      { "mirrors", mirrored },
                      { "thinpool", thin },
                      { "snapshotsize", others } };
        const struct pool_lvm_layout layout = pool_lvm_layout_of(parameters);
        const unsigned least = strcmp(layout.type, "raid10") == 0 ? 2 : layout.parity > 0 ? layout.parity + 1 : 1;

        for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
                if (json_object_get(parameters, rules[i].key) != NULL && !text_among(layout.type, rules[i].types))
                        return fail_because(error, EINVAL, "check parameters", rules[i].key,
                                            "a volume of type %s has no parameter \"%s\"", layout.type, rules[i].key);
        if (layout.stripes < least)
                return fail_because(error, EINVAL, "check parameters", "stripes",
                                    "a volume of type %s has at least %u stripes", layout.type, least);
        if (strcmp(layout.type, "thin") == 0 && layout.thin_pool == NULL)
                return fail_because(error, EINVAL, "check parameters", "thinpool",
                                    "a thin volume needs \"thinpool\", the name of a thin pool of the volume group");
        return 0;
}

/* The type, and over how many images it lies, or in which thin pool. POOL_LAYOUT_SIZE bytes. */
void pool_lvm_layout_describe(const char *type, unsigned images, const char *thin_pool, char *ret_layout)
{
        if (thin_pool != NULL && thin_pool[0] != '\0')
                (void)snprintf(ret_layout, POOL_LAYOUT_SIZE, "%s in %s", type, thin_pool);
        else if (images > 1)
                (void)snprintf(ret_layout, POOL_LAYOUT_SIZE, "%s of %u", type, images);
        else
                (void)snprintf(ret_layout, POOL_LAYOUT_SIZE, "%s", type);
}

bool pool_lvm_layout_fits(const struct pool_item *item, const json_t *parameters)
{
        const struct pool_lvm_layout layout = pool_lvm_layout_of(parameters);
        char wanted[POOL_LAYOUT_SIZE];

        pool_lvm_layout_describe(layout.type, (layout.stripes * layout.copies) + layout.parity, layout.thin_pool,
                                 wanted);
        return strcmp(item->layout, wanted) == 0;
}

void pool_lvm_layout_note(const struct pool_item *item, json_t *parameters)
{
        static const char thin[] = "thin in ";

        if (!text_starts(item->layout, thin) || json_object_get(parameters, "type") != NULL)
                return;
        (void)json_object_set_new(parameters, "type", json_string("thin"));
        (void)json_object_set_new(parameters, "thinpool", json_string(item->layout + strlen(thin)));
}

static uint64_t round_down(uint64_t bytes, uint64_t step)
{
        return bytes / step * step;
}

/* What a volume takes of its group: data, copies, parity and metadata (an extent per image, or a log). */
static uint64_t taken_by(const struct lvm_volume *volume, uint64_t extent_bytes)
{
        uint64_t bytes = volume->size_bytes;

        if (strcmp(volume->type, "mirror") == 0)
                return (bytes * volume->stripes) + extent_bytes;
        if (!text_starts(volume->type, "raid") || volume->data_stripes == 0)
                return bytes;
        /* lvm counts copies of raid5 and raid6, too: one more than images may fail */
        bytes = text_starts(volume->type, "raid1") ? bytes * volume->copies
                                                   : bytes / volume->data_stripes * volume->stripes;
        return bytes + (volume->stripes * extent_bytes);
}

struct use {
        uint64_t extent_bytes;
        const char *thin_pool;
        uint64_t ours_bytes; /* what our volumes take of the group, or of its thin pools, at full size */
        uint64_t thin_pool_bytes;
        uint64_t thin_bytes; /* of the volumes in that thin pool, at full size */
};

static int add_use(const struct lvm_volume *volume, void *argument, struct error *error)
{
        struct use *use = argument;

        (void)error;
        if (volume->ours)
                use->ours_bytes += taken_by(volume, use->extent_bytes);
        if (use->thin_pool != NULL && strcmp(volume->name, use->thin_pool) == 0 &&
            strcmp(volume->type, "thin-pool") == 0)
                use->thin_pool_bytes = volume->size_bytes;
        if (use->thin_pool != NULL && strcmp(volume->thin_pool, use->thin_pool) == 0)
                use->thin_bytes += volume->size_bytes;
        return 0;
}

/* One volume needs the same room on each disk of its layout: the fullest of them is the limit. */
static int find_largest(const struct pool *pool, const struct pool_lvm_layout *layout, const struct lvm_group *group,
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
        if (layout->has_metadata)
                each_bytes = each_bytes > group->extent_bytes ? each_bytes - group->extent_bytes : 0;
        *ret_bytes = round_down(each_bytes, group->extent_bytes) * layout->stripes;
        return 0;
}

void pool_lvm_check_disks(const struct lvm_group *group, struct pool_measure *measure)
{
        if (group->missing == 0)
                return;
        measure->problem_errnum = ENODEV;
        measure->problem = "a disk of its volume group is missing: until it is back, or vgreduce --removemissing was "
                           "run, lvm makes nothing there";
}

static int measure(const struct pool *pool, const json_t *parameters, struct pool_measure *ret_measure,
                   struct error *error)
{
        const struct pool_lvm_layout layout = pool_lvm_layout_of(parameters);
        struct use use = { .thin_pool = layout.thin_pool };
        struct lvm_group group;
        uint64_t budget;
        uint64_t left;
        uint64_t room;
        uint64_t metadata;
        uint64_t copies = (uint64_t)layout.copies * (layout.stripes + layout.parity);
        int r;

        if ((r = lvm_find_group(pool->volume_group, &group, error)) < 0)
                return r;
        pool_lvm_check_disks(&group, ret_measure);
        use.extent_bytes = group.extent_bytes;
        if ((r = lvm_each(pool->volume_group, add_use, &use, error)) < 0)
                return r;
        budget = pool_share(pool, group.size_bytes);
        left = budget > use.ours_bytes ? budget - use.ours_bytes : 0;
        ret_measure->total_bytes = round_down(budget, group.extent_bytes);
        ret_measure->alignment_bytes = group.extent_bytes * layout.stripes;
        if (layout.thin_pool != NULL) {
                if (use.thin_pool_bytes == 0 && ret_measure->problem == NULL) {
                        ret_measure->problem_errnum = ENODEV;
                        ret_measure->problem = "its volume group has no thin pool of the name that \"thinpool\" says";
                }
                room = use.thin_pool_bytes > use.thin_bytes ? use.thin_pool_bytes - use.thin_bytes : 0;
                ret_measure->available_bytes = round_down(room < left ? room : left, group.extent_bytes);
                ret_measure->largest_bytes = ret_measure->available_bytes;
                return 0;
        }
        if ((r = find_largest(pool, &layout, &group, &ret_measure->largest_bytes, error)) < 0)
                return r;
        if (group.free_bytes < left)
                left = group.free_bytes;
        /* without copies and parity */
        ret_measure->available_bytes = round_down(left / copies * layout.stripes, group.extent_bytes * layout.stripes);
        metadata = layout.has_metadata ? copies * group.extent_bytes : layout.copies > 1 ? group.extent_bytes : 0;
        left = left > metadata ? left - metadata : 0;
        left = round_down(left / copies * layout.stripes, group.extent_bytes * layout.stripes);
        if (ret_measure->largest_bytes > left)
                ret_measure->largest_bytes = left;
        return 0;
}

/* One run of lvm answers all of it. */
int pool_lvm_layout_measure(const struct config *config, const struct pool *pool, const json_t *parameters,
                            struct pool_measure *ret_measure, struct error *error)
{
        int r;

        (void)config;
        lvm_hold();
        r = measure(pool, parameters, ret_measure, error);
        lvm_release();
        return r;
}
