/* SPDX-License-Identifier: Apache-2.0 */
#include "create.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <uuid/uuid.h>

#include "base/clock.h"
#include "namespaces.h"

#define ALIGN_BYTES (2UL << 20) /* of mappings: huge pages */
#define SECTOR_BYTES 4096U
#define TRIES 50
#define TRY_MS 20
#define WIPE_BYTES (4ULL << 20) /* at each end; signatures are nearer to an end than this */

/* The kernel creates a new seed after the last one was used, with some delay. */
static struct ndctl_namespace *find_seed(struct ndctl_region *region)
{

        for (int i = 0; i < TRIES; i++) {
                struct ndctl_namespace *seed = ndctl_region_get_namespace_seed(region);

                if (seed != NULL && !ndctl_namespace_is_active(seed) && ndctl_namespace_get_size(seed) == 0)
                        return seed;
                clock_pause_ms(TRY_MS);
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
                (void)ndctl_pfn_set_namespace(pfn, NULL); /* the first failure is reported */
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
                (void)ndctl_btt_set_namespace(btt, NULL); /* as above */
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

/* Check that the opened file is the device of this name. */
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

/* Wipe both ends, and where data will begin: behind the kernel's 64 bytes a page (docs/KERNEL.md#persistent-memory). */
static int wipe_device(const char *device, unsigned long long bytes)
{
        unsigned long long data = bytes / 64;
        unsigned long long data_end = data + (2 * WIPE_BYTES) < bytes ? data + (2 * WIPE_BYTES) : bytes;
        char path[64];
        int fd = -1;
        int r;

        (void)snprintf(path, sizeof path, "/dev/%s", device);
        for (int i = 0; fd < 0 && i < TRIES; i++) {
                fd = open(path, O_RDWR | O_EXCL | O_CLOEXEC);
                if (fd < 0)
                        clock_pause_ms(TRY_MS);
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

/* Before it has its name: the memory may hold an old filesystem, or a disk of a volume group. */
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

/* Ask the kernel, not libndctl, which caches the uuid: another process may have taken the same seed. */
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

int create_namespace(struct ndctl_ctx *context, char **words)
{
        struct ndctl_region *region = namespaces_find_region(context, words[0]);
        struct ndctl_namespace *namespace;
        unsigned long long bytes = strtoull(words[2], NULL, 10);
        const bool fsdax = strcmp(words[3], "fsdax") == 0;
        const char *step = "name";
        uuid_t uuid;
        int r;

        if (region == NULL)
                return namespaces_complain("find region", words[0], ENOENT);
        if (namespaces_tidy(region) != 0)
                return 1;
        namespace = find_seed(region);
        if (namespace == NULL)
                return namespaces_complain("find a free namespace of", words[0], ENXIO);
        if (uuid_parse(words[4], uuid) < 0)
                return namespaces_complain("read", words[4], EINVAL);
        if ((r = ndctl_namespace_set_uuid(namespace, uuid)) < 0)
                return namespaces_complain(step, words[1], r);
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
                        (void)ndctl_namespace_disable_invalidate(namespace); /* the first failure is reported */
                        (void)ndctl_namespace_delete(namespace);
                }
                return namespaces_complain(step, words[1], r);
        }
        return 0;
}
