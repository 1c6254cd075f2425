/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool_pmem_lvm.c - type pmem in mode lvm: namespaces named "flexgraft" are the disks of one volume group, the region's,
 * and each volume is a logical volume of it.
 *
 * The group is made, and grows to "maxPercent" of the region, when a volume is made. Parameters: "usage", as in mode
 * direct. Other namespaces of the region, and other volume groups, are not touched.
 */
#include "pool/pool_lvm.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "block/device.h"
#include "block/lvm.h"
#include "block/pmem.h"
#include "pool/pool.h"
#include "pool/pool_pmem.h"
#include "process/log.h"

#define DISK_MIN_BYTES ((uint64_t)16 << 20) /* below that, too much of it would be metadata */

/* Both names are checked, and fit. */
static const char *read_keys(const json_t *file, struct pool *pool)
{
        const char *group = json_string_value(json_object_get(file, "volumeGroup"));

        (void)text_copy(pool->region, sizeof pool->region, json_string_value(json_object_get(file, "region")));
        if (group != NULL)
                (void)text_copy(pool->volume_group, sizeof pool->volume_group, group);
        else
                (void)snprintf(pool->volume_group, sizeof pool->volume_group, "flexgraft-%s", pool->region);
        return NULL;
}

/* The group, if it is there. One that flexgraft did not make is not filled. */
static int find_group(const struct pool *pool, struct lvm_group *ret_group, struct error *error)
{
        int r = lvm_find_group(pool->volume_group, ret_group, error);

        if (r == -ENOENT) {
                *ret_group = (struct lvm_group){ .extent_bytes = LVM_EXTENT_BYTES };
                return 0;
        }
        if (r == 0 && !ret_group->ours)
                return fail_because(error, EEXIST, OPERATION_FIND_VOLUME_GROUP, pool->volume_group,
                                    "volume group %s was not made by flexgraft: it does not have the tag " LVM_TAG,
                                    pool->volume_group);
        return r < 0 ? r : 1;
}

/* What a disk of so many bytes gives to the group. */
static uint64_t given_by(uint64_t disk_bytes, uint64_t extent_bytes)
{
        uint64_t bytes = pmem_usable_bytes(disk_bytes);

        return bytes > LVM_DATA_OFFSET_BYTES ? (bytes - LVM_DATA_OFFSET_BYTES) / extent_bytes * extent_bytes : 0;
}

struct use {
        uint64_t extent_bytes;
        uint64_t ours_bytes;  /* of the region */
        uint64_t given_bytes; /* to the group, when all that are there have been added */
        uint64_t making_bytes;
};

static int add_use(const struct pmem_namespace *namespace, void *argument, struct error *error)
{
        struct use *use = argument;

        (void)error;
        if (strcmp(namespace->name, PMEM_DISK) == 0) {
                use->ours_bytes += namespace->size_bytes;
                use->given_bytes += given_by(namespace->size_bytes, use->extent_bytes);
        } else if (strcmp(namespace->name, PMEM_MAKING) == 0)
                use->making_bytes = namespace->size_bytes; /* at most one, since the region is locked */
        return 0;
}

/* What the pool may still take of the region. A namespace that a killed call left unfinished counts as free: it is
 * removed before another is made. */
static int find_room(const struct pool *pool, struct use *use, struct pmem_region *ret_region, uint64_t *ret_bytes,
                     struct error *error)
{
        uint64_t budget;
        int r;

        if ((r = pmem_look(pool->region, ret_region, add_use, use, error)) < 0)
                return r;
        if (use->making_bytes > 0 && ret_region->extents_count < PMEM_EXTENTS_MAX)
                ret_region->extents[ret_region->extents_count++] = use->making_bytes;
        budget = pool_share(pool, ret_region->size_bytes);
        *ret_bytes = budget > use->ours_bytes ? budget - use->ours_bytes : 0;
        return 0;
}

/* The next disk: of the largest extent, as much as there is room for; 0: no more. */
static uint64_t next_disk(const struct pmem_region *region, uint64_t room_bytes, size_t *ret_extent)
{
        uint64_t bytes = 0;

        for (size_t i = 0; i < region->extents_count; i++)
                if (region->extents[i] > bytes) {
                        bytes = region->extents[i];
                        *ret_extent = i;
                }
        if (bytes > room_bytes)
                bytes = room_bytes;
        bytes -= bytes % region->align_bytes;
        return bytes >= DISK_MIN_BYTES ? bytes : 0;
}

/* Flexgraft wipes a namespace before it names it: anything on it but an LVM label was put there by others. */
static int holds_nothing(const struct block_device *device, struct error *error)
{
        char what[64]; /* as block_device_is_blank() gives it */
        int r = block_device_is_blank(device, what, error);

        if (r != 0 || strcmp(what, "LVM2_member") == 0)
                return r < 0 ? r : 1;
        log_say("%s is not used: there is something on it (%s)", device->path, what);
        return 0;
}

struct waiting {
        uint64_t extent_bytes;
        uint64_t bytes;
};

/* A disk of flexgraft that a killed call did not add to the group yet. */
static int add_waiting(const struct pmem_namespace *namespace, void *argument, struct error *error)
{
        struct waiting *waiting = argument;
        struct block_device device;
        char group[LVM_NAME_MAX];

        if (strcmp(namespace->name, PMEM_DISK) == 0 && pmem_find_device(namespace, &device, error) == 0 &&
            lvm_find_disk(namespace->device, group, error) == 0 && group[0] == '\0' &&
            holds_nothing(&device, error) > 0)
                waiting->bytes += given_by(namespace->size_bytes, waiting->extent_bytes);
        return 0; /* what cannot be read is no room */
}

static int measure(const struct config *config, const struct pool *pool, const json_t *parameters,
                   struct pool_measure *ret_measure, struct error *error)
{
        struct pmem_region region;
        struct lvm_group group;
        struct use use = {};
        uint64_t room_bytes;
        uint64_t disk_bytes;
        uint64_t coming = 0; /* with disks that are not made, or not added, yet */
        size_t extent = 0;
        int r;

        (void)config;
        (void)parameters;
        lvm_hold(); /* so that its disks are reported, too */
        r = find_group(pool, &group, error);
        lvm_release();
        if (r < 0)
                return r;
        use.extent_bytes = group.extent_bytes;
        if ((r = find_room(pool, &use, &region, &room_bytes, error)) < 0)
                return r;
        if (use.given_bytes > group.size_bytes) { /* else all of them are in it */
                struct waiting waiting = { .extent_bytes = group.extent_bytes };

                if ((r = pmem_look(pool->region, /* ret_region= */ NULL, add_waiting, &waiting, error)) < 0)
                        return r;
                coming = waiting.bytes;
        }
        while ((disk_bytes = next_disk(&region, room_bytes, &extent)) > 0) {
                coming += given_by(disk_bytes, group.extent_bytes);
                region.extents[extent] -= disk_bytes;
                room_bytes -= disk_bytes;
        }
        *ret_measure = (struct pool_measure){ .total_bytes = group.size_bytes + coming,
                                              .available_bytes = group.free_bytes + coming,
                                              .largest_bytes = group.free_bytes + coming,
                                              .alignment_bytes = group.extent_bytes };
        if (group.size_bytes == 0)
                pool_pmem_check_labels(&region, ret_measure);
        pool_lvm_check_disks(&group, ret_measure);
        return 0;
}

struct filling {
        const struct config *config;
        const struct pool *pool;
        bool exists; /* the group */
        char cut_short[PMEM_NAME_MAX];
};

/* Add a disk of flexgraft that is in no group yet. */
static int take_disk(const struct pmem_namespace *namespace, void *argument, struct error *error)
{
        struct filling *filling = argument;
        const struct pool *pool = filling->pool;
        struct block_device device;
        char group[LVM_NAME_MAX];
        int r;

        if (strcmp(namespace->name, PMEM_DISK) != 0)
                return 0;
        if ((r = pmem_wait_for(namespace, filling->config->device_seconds, &device, error)) < 0 ||
            (r = lvm_find_disk(namespace->device, group, error)) < 0)
                return r;
        if (strcmp(group, pool->volume_group) == 0)
                return 0;
        if (group[0] != '\0') {
                log_say("%s is not used: it is a disk of volume group %s", namespace->device, group);
                return 0;
        }
        if ((r = holds_nothing(&device, error)) <= 0)
                return r;
        if (strcmp(namespace->mode, "raw") == 0) {
                (void)text_copy(filling->cut_short, sizeof filling->cut_short, namespace->device_name);
                return 0;
        }
        if ((r = lvm_add_disk(pool->volume_group, filling->exists, namespace->device, error)) < 0)
                return r;
        filling->exists = true;
        return 0;
}

/* Ensure that the group has all that the pool may take. */
static int fill(const struct config *config, const struct pool *pool, struct error *error)
{
        struct filling filling = { .config = config, .pool = pool };
        struct pmem_region region;
        struct lvm_group group;
        uint64_t room_bytes;
        uint64_t disk_bytes;
        char uuid[PROVISION_IDENTITY_MAX];
        size_t ignored;
        int r;

        if ((r = find_group(pool, &group, error)) < 0)
                return r;
        filling.exists = r > 0;
        if ((r = pmem_tidy(pool->region, error)) < 0 ||
            (r = pmem_look(pool->region, /* ret_region= */ NULL, take_disk, &filling, error)) < 0)
                return r;
        if (filling.cut_short[0] != '\0' && (r = pmem_destroy(filling.cut_short, error)) < 0)
                return r;
        for (;;) {
                struct use use = { .extent_bytes = group.extent_bytes };

                if ((r = find_room(pool, &use, &region, &room_bytes, error)) < 0)
                        return r;
                disk_bytes = next_disk(&region, room_bytes, &ignored);
                if (disk_bytes == 0)
                        return 0;
                if ((r = pool_pmem.choose_identity(uuid, error)) < 0 ||
                    (r = pmem_create(pool->region, PMEM_DISK, disk_bytes, "fsdax", uuid, error)) < 0 ||
                    (r = pmem_look(pool->region, /* ret_region= */ NULL, take_disk, &filling, error)) < 0)
                        return r;
        }
}

static int create(const struct config *config, const struct pool *pool, const struct provision_record *record,
                  struct pool_item *ret_item, struct error *error)
{
        int r = fill(config, pool, error);

        return r < 0 ? r : pool_lvm.create(config, pool, record, ret_item, error);
}

/* Its programs are started by the kinds that it consists of. */
const struct pool_kind pool_pmem_lvm = { .type = "pmem",
                                         .mode = "lvm",
                                         .needs = NEED(PMEM_REGIONS) | NEED(PMEM_NAMESPACES) | NEED(LVM) |
                                                  NEED(DEVICE_MAPPER),
                                         .keys = pool_pmem_keys,
                                         .parameters = pool_pmem_parameters,
                                         .read = read_keys,
                                         .recall = pool_pmem_recall,
                                         .locate = pool_pmem_locate, /* as others of its region, of either mode */
                                         .locate_disks = pool_lvm_locate,
                                         .measure = measure,
                                         .choose_id = pool_lvm_choose_id,
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
                                         .remove = pool_lvm_remove,
                                         .each = pool_lvm_each };
