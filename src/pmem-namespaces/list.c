/* SPDX-License-Identifier: Apache-2.0 */
#include "list.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <uuid/uuid.h>

#include "namespaces.h"

#define REGION_ALIGN_BYTES (16UL << 20) /* if the kernel does not tell (docs/KERNEL.md#persistent-memory) */
#define EXTENTS_MAX 64

static const char *mode_word(enum ndctl_namespace_mode mode)
{
        switch (mode) {
        case NDCTL_NS_MODE_FSDAX:
                return "fsdax";
        case NDCTL_NS_MODE_SECTOR:
                return "sector";
        case NDCTL_NS_MODE_DEVDAX:
                return "devdax";
        default:
                return "raw";
        }
}

/* The block device, and its size: that of the pfn or btt of the namespace, if it has one. */
static const char *device_of(struct ndctl_namespace *namespace, unsigned long long *ret_bytes)
{
        struct ndctl_pfn *pfn = ndctl_namespace_get_pfn(namespace);
        struct ndctl_btt *btt = ndctl_namespace_get_btt(namespace);

        *ret_bytes = pfn != NULL   ? ndctl_pfn_get_size(pfn)
                     : btt != NULL ? ndctl_btt_get_size(btt)
                                   : ndctl_namespace_get_size(namespace);
        return pfn != NULL   ? ndctl_pfn_get_block_device(pfn)
               : btt != NULL ? ndctl_btt_get_block_device(btt)
                             : ndctl_namespace_get_block_device(namespace);
}

static json_t *namespace_object(struct ndctl_namespace *namespace)
{
        unsigned long long bytes;
        const char *device = device_of(namespace, &bytes);
        const char *name = ndctl_namespace_get_alt_name(namespace);
        char uuid_text[UUID_STR_LEN];
        char path[64];
        uuid_t uuid;

        (void)snprintf(path, sizeof path, "/dev/%s", device != NULL ? device : "");
        ndctl_namespace_get_uuid(namespace, uuid);
        uuid_unparse_lower(uuid, uuid_text);
        return json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:s, s:b}", "namespace",
                         ndctl_namespace_get_devname(namespace), "uuid", uuid_text, "name", name != NULL ? name : "",
                         "mode", mode_word(ndctl_namespace_get_mode(namespace)), "size",
                         (json_int_t)ndctl_namespace_get_size(namespace), "usable", (json_int_t)bytes, "device",
                         path[5] != '\0' ? path : "", "active", ndctl_namespace_is_active(namespace));
}

/* The alignment of namespaces, as the kernel computes it: every interleave way has an equal part of a namespace. */
static unsigned long long align_of(struct ndctl_region *region)
{
        unsigned long align = ndctl_region_get_align(region);
        unsigned ways = ndctl_region_get_interleave_ways(region);

        if (align != ULONG_MAX && align > 0)
                return align;
        return REGION_ALIGN_BYTES % (ways > 0 ? ways : 1) == 0 ? REGION_ALIGN_BYTES : REGION_ALIGN_BYTES * ways;
}

struct piece {
        unsigned long long start;
        unsigned long long bytes;
};

static int compare_starts(const void *a, const void *b)
{
        const struct piece *first = a;
        const struct piece *second = b;

        return (first->start > second->start) - (first->start < second->start);
}

/* The free extents, by address. libndctl lists namespaces in any order. */
static json_t *extents_of(struct ndctl_region *region)
{
        const unsigned long long align = align_of(region);
        unsigned long long at = ndctl_region_get_resource(region);
        unsigned long long end = at + ndctl_region_get_size(region);
        struct piece used[EXTENTS_MAX + 1];
        struct ndctl_namespace *namespace;
        json_t *extents = json_array();
        size_t count = 0;

        ndctl_namespace_foreach (region, namespace) {
                if (ndctl_namespace_get_size(namespace) == 0)
                        continue;
                if (count == EXTENTS_MAX)
                        return extents; /* too many: report no free space */
                used[count].start = ndctl_namespace_get_resource(namespace);
                used[count++].bytes = ndctl_namespace_get_size(namespace);
        }
        qsort(used, count, sizeof used[0], compare_starts);
        used[count++] = (struct piece){ .start = end };
        for (size_t i = 0; i < count; i++) {
                unsigned long long from = (at + align - 1) / align * align;

                if (used[i].start >= from + align)
                        (void)json_array_append_new(extents,
                                                    json_integer((json_int_t)((used[i].start - from) / align * align)));
                at = used[i].start + used[i].bytes;
        }
        return extents;
}

/* Whether a module of the region has room for labels. */
static bool can_have_labels(struct ndctl_region *region)
{
        struct ndctl_mapping *mapping;

        ndctl_mapping_foreach(region, mapping) if (ndctl_dimm_is_cmd_supported(ndctl_mapping_get_dimm(mapping),
                                                                               ND_CMD_GET_CONFIG_SIZE)) return true;
        return false;
}

static json_t *region_object(struct ndctl_ctx *context, struct ndctl_region *region)
{
        char identity[NAMESPACES_IDENTITY_SIZE];
        json_t *namespaces = json_array();
        struct ndctl_namespace *namespace;
        unsigned long long largest = ndctl_region_get_max_available_extent(region);
        unsigned long long available = ndctl_region_get_available_size(region);

        namespaces_put_identity(context, region, identity);
        ndctl_namespace_foreach (region, namespace)
                if (ndctl_namespace_get_size(namespace) > 0) /* size 0: a seed */
                        (void)json_array_append_new(namespaces, namespace_object(namespace));
        return json_pack("{s:s, s:s, s:b, s:b, s:I, s:I, s:I, s:I, s:I, s:o, s:o}", "region",
                         ndctl_region_get_devname(region), "identity", identity, "labels",
                         namespaces_has_labels(region), "labelArea", can_have_labels(region), "size",
                         (json_int_t)ndctl_region_get_size(region), "available", (json_int_t)available, "largest",
                         (json_int_t)(largest == ULLONG_MAX ? available : largest), "align",
                         (json_int_t)align_of(region), "ways", (json_int_t)ndctl_region_get_interleave_ways(region),
                         "extents", extents_of(region), "namespaces", namespaces);
}

int list_namespaces(struct ndctl_ctx *context)
{
        json_t *regions = json_array();
        json_t *report = json_pack("{s:o}", "regions", regions);
        struct ndctl_region *region;
        struct ndctl_bus *bus;
        int r;

        ndctl_bus_foreach (context, bus)
                ndctl_region_foreach (bus, region)
                        if (namespaces_is_pmem(region))
                                (void)json_array_append_new(regions, region_object(context, region));
        r = report != NULL ? json_dumpf(report, stdout, JSON_COMPACT) : -1;
        json_decref(report);
        return r < 0 || fflush(stdout) != 0 ? namespaces_complain("print", "the report", ENOSPC) : 0;
}
