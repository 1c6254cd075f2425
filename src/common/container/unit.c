/* SPDX-License-Identifier: Apache-2.0 */
#include "container/unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/json_value.h"
#include "base/text.h"
#include "container/control_group.h"

#define UNIT_MAX 255
#define SLICE_DEPTH_MAX 8
#define SLICES_MAX 4096

int unit_take(const char *key, const json_t *value, const char **ret_unit, struct error *error)
{
        int r = json_value_string(key, value, UNIT_MAX, ret_unit, error);

        if (r < 0)
                return r;
        if (strspn(*ret_unit, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:-_.\\@") !=
                    strlen(*ret_unit) ||
            (*ret_unit)[0] == '.' || !(text_ends(*ret_unit, ".service") || text_ends(*ret_unit, ".scope")))
                return json_value_refuse(error, key, "must be the name of a unit, as web.service or web.scope");
        return 0;
}

/* The slice of an instance, unless its file says otherwise: web@1.service is in system-web.slice, with "-" escaped. */
static void name_instance_slice(const char *unit, char *ret_path, size_t size)
{
        size_t length = strcspn(unit, "@");
        size_t end = (size_t)snprintf(ret_path, size, "system.slice/system-");

        for (size_t i = 0; i < length && end + 8 < size; i++)
                end += (size_t)snprintf(ret_path + end, size - end, unit[i] == '-' ? "\\x2d" : "%c", unit[i]);
        (void)snprintf(ret_path + end, size - end, ".slice/%s", unit);
}

/* In all slices: a slice's directory lies in that of the slice that its name begins with. */
static int search_slices(int slice_fd, const char *unit, unsigned depth, unsigned *slices)
{
        cleanup_close int fd = control_group_open(slice_fd, unit);
        const struct dirent *entry;
        DIR *directory;
        int found = -ENOENT;

        if (fd >= 0)
                return fd_take(&fd);
        if (depth == SLICE_DEPTH_MAX)
                return -ENOENT;
        directory = file_list(slice_fd, ".");
        if (directory == NULL)
                return -errno;
        while (found < 0 && *slices < SLICES_MAX && (entry = readdir(directory)) != NULL) {
                cleanup_close int below_fd = -EBADF;

                if (!text_ends(entry->d_name, ".slice"))
                        continue;
                ++*slices;
                below_fd = control_group_open_roots(dirfd(directory), entry->d_name);
                if (below_fd >= 0)
                        found = search_slices(below_fd, unit, depth + 1, slices);
        }
        (void)closedir(directory);
        return found;
}

/* The usual slices first: this costs the same however many there are. */
static int open_unit(int root_fd, const char *unit)
{
        cleanup_close int system_fd = control_group_open_roots(root_fd, "system.slice");
        unsigned slices = 0;
        char path[2048];
        int fd = -ENOENT;

        if (system_fd >= 0)
                fd = control_group_open(system_fd, unit);
        if (fd < 0 && system_fd >= 0 && strchr(unit, '@') != NULL) {
                name_instance_slice(unit, path, sizeof path);
                fd = control_group_open(root_fd, path);
        }
        return fd >= 0 ? fd : search_slices(root_fd, unit, 0, &slices);
}

int unit_find(const char *unit, struct container_process *ret_process, struct error *error)
{
        cleanup_close int root_fd = control_group_open_root();
        cleanup_close int unit_fd = root_fd < 0 ? root_fd : open_unit(root_fd, unit);
        cleanup_close int payload_fd = -EBADF;
        int r;

        if (unit_fd < 0 && unit_fd != -ENOENT)
                return fail(error, -unit_fd, "open", "/sys/fs/cgroup");
        if (unit_fd < 0)
                return fail_because(error, ENOENT, OPERATION_FIND_CONTAINER, unit, "no unit of this name runs");
        payload_fd = control_group_open(unit_fd, "payload");
        r = control_group_first(payload_fd >= 0 ? payload_fd : unit_fd, unit, /* parent= */ 0, ret_process, error);
        if (r == 0 && ret_process->pid == 0)
                return fail_because(error, ESRCH, OPERATION_FIND_CONTAINER, unit, "the unit has no process");
        if (r == 0)
                return fail_because(error, EINVAL, OPERATION_FIND_CONTAINER, unit,
                                    "the unit's processes (%d) are in the node's own mount namespace, so it is not a "
                                    "container",
                                    ret_process->pid);
        return r < 0 ? r : 0;
}
