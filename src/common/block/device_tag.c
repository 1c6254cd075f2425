/* SPDX-License-Identifier: Apache-2.0 */
#include "block/device_tag.h"

#include <blkid/blkid.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/text.h"
#include "block/loop_guard.h"
#include "process/log.h"
#include "process/worker.h"

#define PATIENCE_MS 2000 /* with one device */

/* The tags, and what libblkid's probes call them. */
static const struct {
        const char *tag, *name;
} tags[] = {
        { "UUID", "UUID" },
        { "LABEL", "LABEL" },
        { "PARTUUID", "PART_ENTRY_UUID" },
        { "PARTLABEL", "PART_ENTRY_NAME" },
};

bool device_tag_split(const char *source, const char **ret_tag, const char **ret_value)
{
        const char *equals = strchr(source, '=');

        for (size_t i = 0; source[0] != '/' && equals != NULL && i < sizeof tags / sizeof tags[0]; i++)
                if (strlen(tags[i].tag) == (size_t)(equals - source) && text_starts(source, tags[i].tag)) {
                        *ret_tag = tags[i].tag;
                        *ret_value = equals + 1;
                        return true;
                }
        return false;
}

/* ---- one device */

struct look {
        const char *path;
        const char *name; /* of the tag, as libblkid's probes call it */
        const char *value;
        bool has;        /* it has the tag */
        bool part;       /* of a btrfs, which may have other devices */
        bool over_guard; /* it shows what a pod has, as the device behind that does */
};

static bool has_value(blkid_probe probe, const char *name, const char *wanted)
{
        const char *value = NULL;

        return blkid_probe_lookup_value(probe, name, &value, NULL) == 0 && value != NULL &&
               (wanted == NULL || strcmp(value, wanted) == 0);
}

/* A worker that was killed leaves what libblkid has in memory. */
static int look(void *argument, struct error *error)
{
        struct look *look = argument;
        cleanup_close int fd = open(look->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        blkid_probe probe;

        (void)error;
        if (fd < 0 || (probe = blkid_new_probe()) == NULL)
                return 0; /* for example without a medium */
        look->over_guard = text_starts(look->path, "/dev/loop") && loop_guard_is_shown(fd);
        if (blkid_probe_set_device(probe, fd, 0, 0) == 0 && blkid_probe_enable_superblocks(probe, 1) == 0 &&
            blkid_probe_set_superblocks_flags(probe, BLKID_SUBLKS_LABEL | BLKID_SUBLKS_UUID | BLKID_SUBLKS_TYPE) == 0 &&
            blkid_probe_enable_partitions(probe, 1) == 0 &&
            blkid_probe_set_partitions_flags(probe, BLKID_PARTS_ENTRY_DETAILS) == 0 && blkid_do_safeprobe(probe) >= 0) {
                look->has = has_value(probe, look->name, look->value);
                look->part = has_value(probe, "TYPE", "btrfs") && has_value(probe, "UUID_SUB", NULL);
        }
        blkid_free_probe(probe);
        return 0;
}

/* ---- all devices */

struct found {
        unsigned count;
        bool parts; /* all are of a btrfs */
        char path[PATH_MAX];
};

struct search {
        struct look look;
        struct found mine;   /* that only the node writes to */
        struct found theirs; /* that a container or a pod may write to: it could have the tag of another */
        struct found
                held; /* that another device stands on, and keeps: a path of a multipath disk, a disk of a mirror */
        unsigned silent;
};

static void take(struct found *found, const char *path, bool part)
{
        found->parts = (found->count == 0 || found->parts) && part;
        if (found->count++ == 0)
                (void)text_copy(found->path, sizeof found->path, path);
}

/* Whether another device stands on it. */
static bool is_held(const char *name)
{
        char path[NAME_MAX + 64];
        const struct dirent *entry;
        bool held = false;
        DIR *list;

        (void)snprintf(path, sizeof path, "/sys/class/block/%s/holders", name);
        list = opendir(path);
        while (list != NULL && !held && (entry = readdir(list)) != NULL)
                held = entry->d_name[0] != '.';
        if (list != NULL)
                (void)closedir(list); /* only read from */
        return held;
}

static int ask(const char *name, const char *path, void *argument, struct error *error)
{
        struct search *search = argument;
        struct look *one = &search->look;
        int r;

        *one = (struct look){ .path = path, .name = one->name, .value = one->value };
        r = worker_run_without_fds(look, one, clock_now_ms() + PATIENCE_MS, error);
        if (r == -ETIMEDOUT) {
                log_say("%s does not answer, and is passed over", path);
                search->silent++;
                return 0;
        }
        if (r < 0 || !one->has || one->over_guard || device_each_is_divided(name))
                return r;
        if (is_held(name)) {
                take(&search->held, path, one->part);
                return 0;
        }
        if ((r = loop_guard_writes_to(path, error)) < 0)
                return r;
        take(r > 0 ? &search->theirs : &search->mine, path, one->part);
        return 0;
}

static int choose(const struct search *search, const char *source, char *ret_path, struct error *error)
{
        const struct found *found = search->mine.count > 0     ? &search->mine
                                    : search->theirs.count > 0 ? &search->theirs
                                                               : &search->held;

        /* what stands on the node's own may not answer just now: a container's that has the same tag is not meant for it */
        if (found == &search->theirs && search->held.count > 0)
                return fail_because(error, ENOTUNIQ, OPERATION_FIND_DEVICE, source,
                                    "%u block devices have this tag; name the device by its path",
                                    found->count + search->held.count);
        if (found->count == 1 || (found->count > 1 && found->parts))
                return text_copy(ret_path, PATH_MAX, found->path)
                               ? 0
                               : fail(error, ENAMETOOLONG, OPERATION_FIND_DEVICE, source);
        if (found->count > 1)
                return fail_because(error, ENOTUNIQ, OPERATION_FIND_DEVICE, source,
                                    "%u block devices have this tag; name the device by its path", found->count);
        if (search->silent > 0)
                return fail_because(error, ENOENT, OPERATION_FIND_DEVICE, source,
                                    "no block device has this tag, and %u do not answer", search->silent);
        return fail_because(error, ENOENT, OPERATION_FIND_DEVICE, source, "no block device has this tag");
}

int device_tag_find(const char *tag, const char *value, char *ret_path, struct error *error)
{
        struct search search = { .look = { .value = value } };
        char source[256];
        int r;

        (void)snprintf(source, sizeof source, "%s=%s", tag, value);
        if (value[0] == '\0')
                return fail_because(error, ENOENT, OPERATION_FIND_DEVICE, source, "the tag has no value");
        for (size_t i = 0; i < sizeof tags / sizeof tags[0]; i++)
                if (strcmp(tags[i].tag, tag) == 0)
                        search.look.name = tags[i].name;
        r = device_each(ask, &search, error);
        return r < 0 ? r : choose(&search, source, ret_path, error);
}

/* ---- the block devices of the node, by what sysfs says, which asks none of them */

#define ALL "/sys/class/block"

static ssize_t read_attribute(const char *device, const char *name, char *ret_text, size_t size)
{
        char path[NAME_MAX + 64];
        ssize_t n;

        (void)snprintf(path, sizeof path, ALL "/%s/%s", device, name);
        n = file_read(AT_FDCWD, path, ret_text, size);
        if (n > 0)
                ret_text[strcspn(ret_text, "\n")] = '\0';
        return n;
}

/* One that lvm has for itself has a suffix to its UUID. */
static bool is_private(const char *device)
{
        char uuid[256];

        return read_attribute(device, "dm/uuid", uuid, sizeof uuid) > 0 && text_starts(uuid, "LVM-") &&
               strchr(uuid + strlen("LVM-"), '-') != NULL;
}

/* In sysfs "!" stands for the "/" of a name. */
static void put_path(const char *device, char *ret_path)
{
        char name[NAME_MAX];

        if (read_attribute(device, "dm/name", name, sizeof name) > 0)
                (void)snprintf(ret_path, PATH_MAX, "/dev/mapper/%s", name);
        else
                (void)snprintf(ret_path, PATH_MAX, "/dev/%s", device);
        for (char *at = ret_path; (at = strchr(at, '!')) != NULL;)
                *at = '/';
}

bool device_each_is_divided(const char *name)
{
        char path[NAME_MAX + 64];
        DIR *list;
        const struct dirent *entry;
        bool found = false;

        (void)snprintf(path, sizeof path, ALL "/%s", name);
        list = opendir(path);
        while (list != NULL && !found && (entry = readdir(list)) != NULL) {
                char partition[NAME_MAX + 16];

                (void)snprintf(partition, sizeof partition, "%s/partition", entry->d_name);
                found = text_starts(entry->d_name, name) && faccessat(dirfd(list), partition, F_OK, 0) == 0;
        }
        if (list != NULL)
                (void)closedir(list); /* only read from */
        return found;
}

int device_each(device_each_function *function, void *argument, struct error *error)
{
        DIR *list = opendir(ALL);
        const struct dirent *entry;
        int r = 0;

        if (list == NULL)
                return fail(error, errno, OPERATION_FIND_DEVICE, ALL);
        while (r == 0 && (entry = readdir(list)) != NULL) {
                char path[PATH_MAX];
                char size[32];

                if (entry->d_name[0] == '.' || read_attribute(entry->d_name, "size", size, sizeof size) <= 0 ||
                    strcmp(size, "0") == 0 || is_private(entry->d_name))
                        continue;
                put_path(entry->d_name, path);
                if (!loop_guard_has_name(entry->d_name))
                        r = function(entry->d_name, path, argument, error);
        }
        (void)closedir(list); /* only read from */
        return r;
}
