/* SPDX-License-Identifier: Apache-2.0 */
#include "block/device_each.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "block/loop_guard.h"

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
                if (!loop_guard_is_part(path))
                        r = function(entry->d_name, path, argument, error);
        }
        (void)closedir(list); /* only read from */
        return r;
}
