/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pmem-namespaces list | create REGION NAME BYTES fsdax|sector UUID | destroy NAMESPACE | lay-open NAMESPACE |
 * tidy REGION - namespaces of persistent memory.
 *
 * The only program that is linked with libndctl, which there is for dynamic programs alone: the volume tools and the
 * driver's verbs are static, and have it run by a runner (block/pmem.c), with no privileges but those of that. What it says
 * is JSON on standard output; why it could not is a line on standard error, and exit status 1.
 *
 * Whoever runs it holds a lock of the region: what has the name that namespaces have while they are made, at the
 * beginning of a call, was left by one that was killed.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <linux/ndctl.h>
#include <ndctl/libndctl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>
#include <uuid/uuid.h>

#define ALIGN_BYTES (2UL << 20) /* of what is mapped: huge pages */
#define SECTOR_BYTES 4096U
#define REGION_ALIGN_BYTES (16UL << 20) /* where the kernel is silent: before 5.7 */
#define TRIES 50
#define TRY_NS (20L * 1000 * 1000)
#define EXTENTS_MAX 64
#define MAKING "flexgraft-making"
#define WIPE_BYTES (4ULL << 20) /* more than any signature is away from where it counts from */

static int complain(const char *what, const char *subject, int r)
{
        (void)fprintf(stderr, "%s %s: %s\n", what, subject, strerror(r < 0 ? -r : r)); /* nobody else to tell */
        return 1;
}

/* ---- list */

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

/* The block device is that of what lies over the namespace, where something does. */
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

/* What the kernel makes of the number of interleave ways: all of them get the same part of a namespace. */
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

/* Where nothing is, in the order of addresses; namespaces come in any. */
static json_t *extents_of(struct ndctl_region *region)
{
        const unsigned long long align = align_of(region);
        unsigned long long at = ndctl_region_get_resource(region);
        unsigned long long end = at + ndctl_region_get_size(region);
        struct piece used[EXTENTS_MAX + 1];
        struct ndctl_namespace *namespace;
        json_t *extents = json_array();
        size_t count = 0;

        ndctl_namespace_foreach(region, namespace)
        {
                if (ndctl_namespace_get_size(namespace) == 0)
                        continue;
                if (count == EXTENTS_MAX)
                        return extents; /* so many that nothing is promised */
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

static json_t *region_object(struct ndctl_region *region)
{
        json_t *namespaces = json_array();
        struct ndctl_namespace *namespace;
        unsigned long long largest = ndctl_region_get_max_available_extent(region);
        unsigned long long available = ndctl_region_get_available_size(region);

        ndctl_namespace_foreach(region, namespace) if (ndctl_namespace_get_size(namespace) > 0) /* others are seeds */
                (void) json_array_append_new(namespaces, namespace_object(namespace));
        return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:o, s:o}", "region", ndctl_region_get_devname(region), "size",
                         (json_int_t)ndctl_region_get_size(region), "available", (json_int_t)available, "largest",
                         (json_int_t)(largest == ULLONG_MAX ? available : largest), "align",
                         (json_int_t)align_of(region), "ways", (json_int_t)ndctl_region_get_interleave_ways(region),
                         "extents", extents_of(region), "namespaces", namespaces);
}

static bool is_pmem(struct ndctl_region *region)
{
        return ndctl_region_get_type(region) == ND_DEVICE_REGION_PMEM && ndctl_region_is_enabled(region);
}

static int list(struct ndctl_ctx *context)
{
        json_t *regions = json_array();
        json_t *report = json_pack("{s:o}", "regions", regions);
        struct ndctl_region *region;
        struct ndctl_bus *bus;
        int r;

        ndctl_bus_foreach(context, bus) ndctl_region_foreach(bus, region) if (is_pmem(region))(void)
                json_array_append_new(regions, region_object(region));
        r = report != NULL ? json_dumpf(report, stdout, JSON_COMPACT) : -1;
        json_decref(report);
        return r < 0 || fflush(stdout) != 0 ? complain("print", "the report", ENOSPC) : 0;
}

/* ---- destroy */

static struct ndctl_region *find_region(struct ndctl_ctx *context, const char *name)
{
        struct ndctl_region *region;
        struct ndctl_bus *bus;

        ndctl_bus_foreach(context, bus) ndctl_region_foreach(
                bus, region) if (is_pmem(region) && strcmp(ndctl_region_get_devname(region), name) == 0) return region;
        return NULL;
}

static struct ndctl_namespace *find_namespace(struct ndctl_ctx *context, const char *name)
{
        struct ndctl_namespace *namespace;
        struct ndctl_region *region;
        struct ndctl_bus *bus;

        ndctl_bus_foreach(context, bus) ndctl_region_foreach(bus, region) ndctl_namespace_foreach(
                region, namespace) if (strcmp(ndctl_namespace_get_devname(namespace), name) == 0) return namespace;
        return NULL;
}

/* Only what nobody has open: disable_safe looks. */
static int destroy_namespace(struct ndctl_namespace *namespace)
{
        const char *name = ndctl_namespace_get_devname(namespace);
        int r;

        if (ndctl_namespace_get_size(namespace) == 0)
                return 0;
        if ((r = ndctl_namespace_disable_safe(namespace)) < 0)
                return complain("disable", name, r);
        if ((r = ndctl_namespace_delete(namespace)) < 0)
                return complain("delete", name, r);
        return 0;
}

static int destroy(struct ndctl_ctx *context, const char *name)
{
        struct ndctl_namespace *namespace = find_namespace(context, name);

        return namespace != NULL ? destroy_namespace(namespace) : 0;
}

/* What is over the namespace goes, and it is enabled as it is. */
static int lay_open(struct ndctl_ctx *context, const char *name)
{
        struct ndctl_namespace *namespace = find_namespace(context, name);
        int r;

        if (namespace == NULL)
                return complain("find namespace", name, ENOENT);
        if ((r = ndctl_namespace_disable_safe(namespace)) < 0)
                return complain("disable", name, r);
        if ((r = ndctl_namespace_set_raw_mode(namespace, 1)) < 0 || (r = ndctl_namespace_enable(namespace)) < 0)
                return complain("lay open", name, r);
        return 0;
}

/* What a call that was killed left. */
static int tidy(struct ndctl_region *region)
{
        struct ndctl_namespace *namespace;
        struct ndctl_namespace *next;
        int r = 0;

        ndctl_namespace_foreach_safe (region, namespace, next) {
                const char *name = ndctl_namespace_get_alt_name(namespace);

                if (r == 0 && name != NULL && strcmp(name, MAKING) == 0)
                        r = destroy_namespace(namespace);
        }
        return r;
}

static int tidy_region(struct ndctl_ctx *context, const char *name)
{
        struct ndctl_region *region = find_region(context, name);

        return region != NULL ? tidy(region) : 0;
}

/* ---- create */

/* The kernel makes the next one when the last was taken: it may be a moment until it is there. */
static struct ndctl_namespace *find_seed(struct ndctl_region *region)
{
        static const struct timespec pause = { .tv_nsec = TRY_NS };

        for (int i = 0; i < TRIES; i++) {
                struct ndctl_namespace *seed = ndctl_region_get_namespace_seed(region);

                if (seed != NULL && !ndctl_namespace_is_active(seed) && ndctl_namespace_get_size(seed) == 0)
                        return seed;
                (void)nanosleep(&pause, NULL);
        }
        return NULL;
}

static int set_up_fsdax(struct ndctl_region *region, struct ndctl_namespace *namespace)
{
        struct ndctl_pfn *pfn = ndctl_region_get_pfn_seed(region);
        uuid_t uuid;
        int r;

        if (pfn == NULL)
                return -ENXIO;
        uuid_generate(uuid);
        if ((r = ndctl_pfn_set_uuid(pfn, uuid)) < 0 || (r = ndctl_pfn_set_location(pfn, NDCTL_PFN_LOC_PMEM)) < 0 ||
            (ndctl_pfn_has_align(pfn) && (r = ndctl_pfn_set_align(pfn, ALIGN_BYTES)) < 0) ||
            (r = ndctl_pfn_set_namespace(pfn, namespace)) < 0)
                return r;
        r = ndctl_pfn_enable(pfn);
        if (r < 0)
                (void)ndctl_pfn_set_namespace(pfn, NULL); /* the first failure is the one to tell */
        return r;
}

static int set_up_sector(struct ndctl_region *region, struct ndctl_namespace *namespace)
{
        struct ndctl_btt *btt = ndctl_region_get_btt_seed(region);
        uuid_t uuid;
        int r;

        if (btt == NULL)
                return -ENXIO;
        uuid_generate(uuid);
        if ((r = ndctl_btt_set_uuid(btt, uuid)) < 0 || (r = ndctl_btt_set_sector_size(btt, SECTOR_BYTES)) < 0 ||
            (r = ndctl_btt_set_namespace(btt, namespace)) < 0)
                return r;
        r = ndctl_btt_enable(btt);
        if (r < 0)
                (void)ndctl_btt_set_namespace(btt, NULL); /* likewise */
        return r;
}

static int write_zeroes(int fd, unsigned long long from, unsigned long long to)
{
        static const char zeroes[1 << 16];

        for (unsigned long long at = from; at < to;) {
                size_t step = to - at < sizeof zeroes ? (size_t)(to - at) : sizeof zeroes;
                ssize_t n = pwrite(fd, zeroes, step, (off_t)at);

                if (n <= 0 && errno != EINTR)
                        return n < 0 ? -errno : -ENOSPC;
                at += n > 0 ? (unsigned long long)n : 0;
        }
        return 0;
}

/* Whatever a link or a file at that path may lead to. */
static int check_device(int fd, const char *device)
{
        struct stat st;
        char path[96];
        unsigned numbers[2];
        FILE *file;
        int count;

        (void)snprintf(path, sizeof path, "/sys/class/block/%s/dev", device);
        file = fopen(path, "re");
        if (file == NULL)
                return -errno;
        count = fscanf(file, "%u:%u", &numbers[0], &numbers[1]);
        (void)fclose(file); /* only read from */
        return count == 2 && fstat(fd, &st) == 0 && S_ISBLK(st.st_mode) && st.st_rdev == makedev(numbers[0], numbers[1])
                       ? 0
                       : -ENOTBLK;
}

/* At both ends, and where data will begin: behind what the kernel notes of each page, 64 bytes (linux/pfn.h). */
static int wipe_device(const char *device, unsigned long long bytes)
{
        static const struct timespec pause = { .tv_nsec = TRY_NS };
        unsigned long long data = bytes / 64;
        unsigned long long data_end = data + (2 * WIPE_BYTES) < bytes ? data + (2 * WIPE_BYTES) : bytes;
        char path[64];
        int fd = -1;
        int r;

        (void)snprintf(path, sizeof path, "/dev/%s", device);
        for (int i = 0; fd < 0 && i < TRIES; i++) {
                fd = open(path, O_RDWR | O_EXCL | O_CLOEXEC);
                if (fd < 0)
                        (void)nanosleep(&pause, NULL);
        }
        if (fd < 0)
                return -errno;
        r = check_device(fd, device);
        if (r == 0)
                r = write_zeroes(fd, 0, WIPE_BYTES < bytes ? WIPE_BYTES : bytes);
        if (r == 0)
                r = write_zeroes(fd, data > WIPE_BYTES ? data - WIPE_BYTES : 0, data_end);
        if (r == 0)
                r = write_zeroes(fd, bytes > WIPE_BYTES ? bytes - WIPE_BYTES : 0, bytes);
        if (r == 0 && fsync(fd) < 0)
                r = -errno;
        (void)close(fd); /* synced */
        return r;
}

/* Before it has its name nobody looks at it: what was on that memory may be a filesystem, or a disk of a volume group.
 */
static int wipe(struct ndctl_namespace *namespace, unsigned long long bytes)
{
        const char *device;
        int r;

        if ((r = ndctl_namespace_set_raw_mode(namespace, 1)) < 0 || (r = ndctl_namespace_enable(namespace)) < 0)
                return r;
        device = ndctl_namespace_get_block_device(namespace);
        r = device != NULL ? wipe_device(device, bytes) : -ENXIO;
        if (ndctl_namespace_disable_safe(namespace) < 0 && r == 0)
                r = -EBUSY;
        if (ndctl_namespace_set_raw_mode(namespace, 0) < 0 && r == 0)
                r = -EIO;
        return r;
}

/* By the kernel: libndctl remembers what we asked for. Somebody else may have taken the same seed. */
static bool is_ours(struct ndctl_namespace *namespace, const char *uuid)
{
        char path[128];
        char found[UUID_STR_LEN] = "";
        FILE *file;

        (void)snprintf(path, sizeof path, "/sys/bus/nd/devices/%s/uuid", ndctl_namespace_get_devname(namespace));
        file = fopen(path, "re");
        if (file == NULL)
                return false;
        if (fgets(found, sizeof found, file) == NULL)
                found[0] = '\0';
        (void)fclose(file); /* only read from */
        return strcasecmp(found, uuid) == 0;
}

static int create(struct ndctl_ctx *context, char **words)
{
        struct ndctl_region *region = find_region(context, words[0]);
        struct ndctl_namespace *namespace;
        unsigned long long bytes = strtoull(words[2], NULL, 10);
        const bool fsdax = strcmp(words[3], "fsdax") == 0;
        const char *step = "name";
        uuid_t uuid;
        int r;

        if (region == NULL)
                return complain("find region", words[0], ENOENT);
        if (tidy(region) != 0)
                return 1;
        namespace = find_seed(region);
        if (namespace == NULL)
                return complain("find a free namespace of", words[0], ENXIO);
        if (uuid_parse(words[4], uuid) < 0)
                return complain("read", words[4], EINVAL);
        if ((r = ndctl_namespace_set_uuid(namespace, uuid)) < 0)
                return complain(step, words[1], r);
        r = is_ours(namespace, words[4]) ? ndctl_namespace_set_alt_name(namespace, MAKING) : -EBUSY;
        if (r >= 0) {
                step = "allocate";
                r = ndctl_namespace_set_size(namespace, bytes);
        }
        if (r >= 0) {
                step = "wipe";
                r = wipe(namespace, bytes);
        }
        if (r >= 0) {
                step = "name";
                r = ndctl_namespace_set_alt_name(namespace, words[1]);
        }
        if (r >= 0) {
                step = "set up";
                (void)ndctl_namespace_set_enforce_mode(namespace, fsdax ? NDCTL_NS_MODE_FSDAX : NDCTL_NS_MODE_SECTOR);
                r = fsdax ? set_up_fsdax(region, namespace) : set_up_sector(region, namespace);
        }
        if (r < 0) {
                if (is_ours(namespace, words[4])) {
                        (void)ndctl_namespace_disable_invalidate(namespace); /* the first failure is the one to tell */
                        (void)ndctl_namespace_delete(namespace);
                }
                return complain(step, words[1], r);
        }
        return 0;
}

int main(int argc, char **argv)
{
        struct ndctl_ctx *context;
        int r;

        if (argc == 2 && strcmp(argv[1], "--version") == 0)
                return puts("pmem-namespaces (flexgraft) " VERSION) < 0;
        if ((r = ndctl_new(&context)) < 0)
                return complain("look for", "persistent memory", r);
        if (argc == 2 && strcmp(argv[1], "list") == 0)
                r = list(context);
        else if (argc == 7 && strcmp(argv[1], "create") == 0)
                r = create(context, argv + 2);
        else if (argc == 3 && strcmp(argv[1], "destroy") == 0)
                r = destroy(context, argv[2]);
        else if (argc == 3 && strcmp(argv[1], "lay-open") == 0)
                r = lay_open(context, argv[2]);
        else if (argc == 3 && strcmp(argv[1], "tidy") == 0)
                r = tidy_region(context, argv[2]);
        else {
                (void)fputs("Usage: pmem-namespaces list | create REGION NAME BYTES fsdax|sector UUID | destroy "
                            "NAMESPACE | lay-open NAMESPACE | tidy REGION\n",
                            stderr);
                r = 2;
        }
        (void)ndctl_unref(context);
        return r;
}
