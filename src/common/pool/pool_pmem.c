/* SPDX-License-Identifier: Apache-2.0 */
/* pool_pmem.c - namespaces of persistent memory, one per volume and named after it. */
#include "pool/pool_lvm.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"
#include "block/device.h"
#include "block/pmem.h"
#include "pool/pool.h"
#include "pool/pool_identity.h"
#include "pool/pool_pmem.h"
#include "process/log.h"

#define SECTOR_MIN_BYTES                                                                                               \
        (((uint64_t)16 << 20) + 8192) /* drivers/nvdimm/btt.h: ARENA_MIN_SIZE and the info block before it */

/* As ndctl(1) and pmem-namespaces print it. */
static bool is_identity(const char *region)
{
        return text_starts(region, "0x") && region[2] != '\0' && region[2] != '0' &&
               strspn(region + 2, "0123456789abcdef") == strlen(region + 2) && strlen(region) < PMEM_IDENTITY_MAX;
}

static bool is_region(const json_t *value)
{
        const char *region = json_string_value(value);

        return region != NULL &&
               (is_identity(region) || (text_starts(region, "region") && strchr(region, '/') == NULL &&
                                        strlen(region) < sizeof((struct pool *)0)->region));
}

static bool is_mode(const json_t *value)
{
        static const char *const modes[] = { "direct", "lvm", NULL };

        return json_is_string(value) && text_among(json_string_value(value), modes);
}

const struct file_key pool_pmem_keys[] = {
        { "region", "a region's name, as \"region0\", or its iset_id, as \"0x2468ac00123456\"", is_region, true, NULL,
          "Region of persistent memory, by its name or its iset_id.", NULL },
        { "mode", "\"direct\" or \"lvm\"", is_mode, false, "direct",
          "Whether each volume is a namespace of its own, or a logical volume on namespaces.", NULL },
        { "volumeGroup", "a volume group's name", pool_lvm_is_group, false, "flexgraft-REGION",
          "In mode \"lvm\": volume group of the region's namespaces.", NULL },
        {},
};

/* The region's identity, once that is known. The name stays what the pool's file says: where that is changed the pool
 * has another region, of which nothing is known. */
int pool_pmem_recall(const struct config *config, struct pool *pool, struct error *error)
{
        char identity[PROVISION_IDENTITY_MAX] = "";
        int r = is_identity(pool->region)
                        ? 0
                        : pool_identity_recall(config, pool->name, "region", pool->region, identity, error);

        if (r == 0 && is_identity(identity))
                (void)text_copy(pool->region, sizeof pool->region, identity); /* shorter */
        return r;
}

void pool_pmem_know(const struct config *config, struct pool *pool)
{
        struct pmem_region region;
        struct error error;

        if (is_identity(pool->region) ||
            pmem_look(pool->region, &region, /* function= */ NULL, /* argument= */ NULL, &error) < 0 ||
            region.identity[0] == '\0')
                return; /* a region that is not there, or has no labels, is no pool yet */
        if (pool_identity_remember(config, pool->name, "region", pool->region, region.identity, &error) < 0)
                log_say("the region %s of pool %s is known by its name only: %s", pool->region, pool->name,
                        error_why(&error));
        (void)text_copy(pool->region, sizeof pool->region, region.identity); /* shorter */
}

/* The name of a region is checked, and fits. */
static const char *read_keys(const json_t *file, struct pool *pool)
{
        (void)text_copy(pool->region, sizeof pool->region, json_string_value(json_object_get(file, "region")));
        return json_object_get(file, "volumeGroup") != NULL ? "\"volumeGroup\" is for \"mode\" \"lvm\" alone" : NULL;
}

int pool_pmem_locate(const struct config *config, const struct pool *pool, char *ret_location, struct error *error)
{
        struct pool known = *pool;

        (void)error;
        pool_pmem_know(config, &known);
        (void)snprintf(ret_location, POOL_LOCATION_SIZE, "pmem:%s", known.region);
        return 0;
}

static bool is_file_io(const json_t *parameters)
{
        const char *usage = json_string_value(json_object_get(parameters, "usage"));

        return usage != NULL && strcmp(usage, "FileIO") == 0;
}

static bool is_usage(const json_t *value)
{
        static const char *const usages[] = { "AppDirect", "FileIO", NULL };

        return json_is_string(value) && text_among(json_string_value(value), usages);
}

const struct file_key pool_pmem_parameters[] = {
        { "usage", "\"AppDirect\" or \"FileIO\"", is_usage, false, "AppDirect",
          "AppDirect: mode fsdax, with DAX. FileIO: mode sector, with atomic sectors and no DAX.", NULL },
        {},
};

static const char *mode_for(const json_t *parameters)
{
        return is_file_io(parameters) ? "sector" : "fsdax";
}

static bool fits(const struct pool_item *item, const json_t *parameters)
{
        return strcmp(item->layout, mode_for(parameters)) == 0;
}

void pool_pmem_check_labels(const struct pmem_region *region, struct pool_measure *measure)
{
        if (region->has_labels)
                return;
        measure->problem_errnum = region->can_have_labels ? ENODATA : EOPNOTSUPP;
        measure->problem = region->can_have_labels
                                   ? "the region has no labels: it is one namespace, and no volume can be made in it"
                                   : "the region is one namespace, and no volume can be made in it: its memory has no "
                                     "room for labels";
}

static int add_use(const struct pmem_namespace *namespace, void *argument, struct error *error)
{
        uint64_t *used_bytes = argument;

        (void)error;
        *used_bytes += namespace->size_bytes;
        return 0;
}

/* A namespace is contiguous: it needs one free piece of its size. */
static int measure(const struct config *config, const struct pool *pool, const json_t *parameters,
                   struct pool_measure *ret_measure, struct error *error)
{
        struct pmem_region region;
        uint64_t used_bytes = 0;
        uint64_t budget;
        uint64_t left;
        int r;

        (void)config;
        if ((r = pmem_look(pool->region, &region, add_use, &used_bytes, error)) < 0)
                return r;
        budget = pool_share(pool, region.size_bytes) / region.align_bytes * region.align_bytes;
        left = budget > used_bytes ? budget - used_bytes : 0;
        *ret_measure = (struct pool_measure){
                .total_bytes = budget,
                .available_bytes = left < region.available_bytes ? left : region.available_bytes,
                .largest_bytes = left < region.largest_bytes ? left : region.largest_bytes,
                .alignment_bytes = region.align_bytes,
                .minimum_bytes = is_file_io(parameters) ? SECTOR_MIN_BYTES : 0,
        };
        pool_pmem_check_labels(&region, ret_measure);
        ret_measure->largest_bytes -= ret_measure->largest_bytes % region.align_bytes;
        if (ret_measure->largest_bytes < ret_measure->minimum_bytes)
                ret_measure->largest_bytes = 0;
        return 0;
}

static uint64_t device_bytes(const json_t *parameters, uint64_t size_bytes)
{
        return is_file_io(parameters) ? size_bytes : pmem_usable_bytes(size_bytes);
}

/* The volume's own name, where it fits into a label. */
static void choose_id(const struct pool *pool, const char *name, char *ret_id)
{
        bool plain = strlen(name) < PMEM_NAME_MAX && !text_starts(name, "namespace") && !text_starts(name, "flexgraft");

        (void)pool;
        for (const char *byte = name; plain && *byte != '\0'; byte++)
                plain = *byte > ' ' && *byte < 0x7f;
        if (plain)
                (void)text_copy(ret_id, PROVISION_ID_MAX, name); /* shorter */
        else
                (void)snprintf(ret_id, PROVISION_ID_MAX, "flexgraft-%016llx", (unsigned long long)hash_text(name));
}

/* The device of a namespace. */
static int find_device(const struct config *config, const struct pool *pool, const char *id,
                       struct block_device *ret_device, struct error *error)
{
        struct pmem_namespace namespace;
        int r = pmem_find(pool->region, id, &namespace, error);

        if (r < 0)
                return r == -ENOENT ? fail(error, ENOENT, "find namespace", id) : r;
        return pmem_wait_for(&namespace, config->device_seconds, ret_device, error);
}

static int create(const struct config *config, const struct pool *pool, const struct provision_record *record,
                  struct pool_item *ret_item, struct error *error)
{
        struct pmem_namespace namespace;
        struct block_device device;
        int r = pmem_find(pool->region, record->id, &namespace, error);

        (void)ret_item;
        if (r == 0)
                return fail_because(error, EEXIST, "make namespace", record->id,
                                    "the region of pool \"%s\" has a namespace \"%.64s\" already", pool->name,
                                    record->id);
        if (r != -ENOENT)
                return r;
        if ((r = pmem_create(pool->region, record->id, record->size_bytes, mode_for(record->parameters),
                             record->identity, error)) < 0)
                return r;
        return find_device(config, pool, record->id, &device, error);
}

static void item_of(const struct pmem_namespace *namespace, struct pool_item *ret_item)
{
        *ret_item = (struct pool_item){ .size_bytes = namespace->size_bytes, .ours = true };
        (void)text_copy(ret_item->identity, sizeof ret_item->identity, namespace->uuid);
        (void)text_copy(ret_item->layout, sizeof ret_item->layout, namespace->mode);
        (void)text_copy(ret_item->id, sizeof ret_item->id,
                        namespace->name[0] != '\0' ? namespace->name : namespace->device_name);
        (void)text_copy(ret_item->path, sizeof ret_item->path, namespace->device);
}

static int look(const struct config *config, const struct pool *pool, const char *id, struct pool_item *ret_item,
                struct error *error)
{
        struct pmem_namespace namespace;
        int r = pmem_find(pool->region, id, &namespace, error);

        (void)config;
        if (r == 0)
                item_of(&namespace, ret_item);
        return r;
}

static int check_unused(const struct config *config, const struct pool *pool, const char *id, struct error *error)
{
        struct pmem_namespace namespace;
        struct block_device device;
        int r = pmem_find(pool->region, id, &namespace, error);

        (void)config;
        if (r < 0 || namespace.device[0] == '\0')
                return r == -ENOENT ? 0 : r;
        if ((r = pmem_find_device(&namespace, &device, error)) < 0)
                return r;
        return block_device_check_unused(&device, error);
}

static int is_blank(const struct config *config, const struct pool *pool, const char *id, struct error *error)
{
        struct block_device device;
        int r = find_device(config, pool, id, &device, error);

        return r < 0 ? r : block_device_is_zeroed(&device, error);
}

static int wipe(const struct config *config, const struct pool *pool, const char *id, struct error *error)
{
        struct block_device device;
        int r = find_device(config, pool, id, &device, error);

        return r < 0 ? r : block_device_erase(&device, error);
}

/*
 * In mode sector, writing does not overwrite old blocks (drivers/nvdimm/btt.c): the memory itself is erased. A
 * namespace that an administrator disabled stays so; where erasing had begun, a killed process may have disabled it.
 */
static int erase(const struct config *config, const struct pool *pool, const char *id, bool begun, struct error *error)
{
        struct pmem_namespace namespace;
        struct block_device device;
        int r = pmem_find(pool->region, id, &namespace, error);

        if (r == 0 && (namespace.device[0] == '\0' ? begun : strcmp(namespace.mode, "sector") == 0) &&
            (r = pmem_lay_open(namespace.device_name, error)) == 0)
                r = pmem_find(pool->region, id, &namespace, error);
        if (r < 0)
                return r == -ENOENT ? 0 : r;
        if ((r = pmem_wait_for(&namespace, config->device_seconds, &device, error)) < 0)
                return r;
        return block_device_erase(&device, error);
}

static int remove_namespace(const struct config *config, const struct pool *pool, const char *id, struct error *error)
{
        struct pmem_namespace namespace;
        int r = pmem_find(pool->region, id, &namespace, error);

        (void)config;
        if (r < 0)
                return r == -ENOENT ? pmem_tidy(pool->region, error) : r;
        return pmem_destroy(namespace.device_name, error);
}

struct walk {
        pool_item_function *function;
        void *argument;
};

static int pass_on(const struct pmem_namespace *namespace, void *argument, struct error *error)
{
        const struct walk *walk = argument;
        struct pool_item item;

        if (pmem_is_reserved(namespace->name))
                return 0; /* of a volume group, or unfinished */
        item_of(namespace, &item);
        return walk->function(&item, walk->argument, error);
}

static int each(const struct config *config, const struct pool *pool, pool_item_function *function, void *argument,
                struct error *error)
{
        struct walk walk = { .function = function, .argument = argument };

        (void)config;
        return pmem_look(pool->region, /* ret_region= */ NULL, pass_on, &walk, error);
}

static const struct hint hints[] = {
        { OPERATION_FIND_REGION, ENODEV,
          "ndctl list --regions --idle --human lists the regions of persistent memory, those that are disabled too; "
          "one without labels has no iset_id" },
        { OPERATION_FIND_ROOM, ENODATA,
          "ndctl disable-region, ndctl init-labels of its modules, and ndctl enable-region make labels; what is in the "
          "region is lost" },
        {},
};

const struct pool_kind pool_pmem = { .type = "pmem",
                                     .mode = "direct",
                                     .needs = NEED(PMEM_REGIONS) | NEED(PMEM_NAMESPACES),
                                     .hints = hints,
                                     .keys = pool_pmem_keys,
                                     .parameters = pool_pmem_parameters,
                                     .begin = pmem_begin,
                                     .end = pmem_end,
                                     .read = read_keys,
                                     .recall = pool_pmem_recall,
                                     .unmarked = true,
                                     .locate = pool_pmem_locate,
                                     .measure = measure,
                                     .device_bytes = device_bytes,
                                     .choose_id = choose_id,
                                     .choose_identity = pool_identity_choose,
                                     .fits = fits,
                                     .create = create,
                                     .look = look,
                                     .check_unused = check_unused,
                                     .is_blank = is_blank,
                                     .wipe = wipe,
                                     .erase = erase,
                                     .remove = remove_namespace,
                                     .each = each };
