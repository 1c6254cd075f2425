/* SPDX-License-Identifier: Apache-2.0 */
#include "container/control_group.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/json_value.h"
#include "base/text.h"
#include "process/proc.h"

#define DEPTH_MAX 8            /* levels of groups that are searched: a container may nest as many as it likes */
#define GROUPS_MAX 1024        /* on one level */
#define LIST_MAX_BYTES 131072U /* of process ids in one group */
#define TRIES_MAX 16           /* a process may end while it is looked at */

int control_group_open_root(void)
{
        cleanup_close int fd = open("/sys/fs/cgroup", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        struct statfs fs;

        if (fd < 0 || fstatfs(fd, &fs) < 0)
                return -errno;
        if (fs.f_type == CGROUP2_SUPER_MAGIC)
                return fd_take(&fd);
        return control_group_open(fd, "systemd");
}

int control_group_open(int parent_fd, const char *path)
{
        int fd = openat(parent_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

        return fd < 0 ? -errno : fd;
}

int control_group_open_roots(int parent_fd, const char *path)
{
        cleanup_close int fd = control_group_open(parent_fd, path);
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0)
                return fd < 0 ? fd : -errno;
        if (st.st_uid != 0 || (st.st_mode & (S_IWGRP | S_IWOTH)) != 0)
                return -EPERM;
        return fd_take(&fd);
}

int control_group_each(int group_fd, const char *name, control_group_visit *visit, void *argument, struct error *error)
{
        char *text = malloc(LIST_MAX_BYTES);
        ssize_t n = text == NULL ? -ENOMEM : file_read(group_fd, "cgroup.procs", text, LIST_MAX_BYTES);
        char *next = text;
        int r = 0;

        while (n >= 0 && r == 0 && next != NULL && *next != '\0') {
                char *line = strsep(&next, "\n");
                uint64_t pid;

                if (text_number(line, INT32_MAX, &pid) && pid > 0) /* 0: of another pid namespace */
                        r = visit((pid_t)pid, argument, error);
        }
        free(text);
        if (n == -EFBIG)
                return fail_because(error, E2BIG, OPERATION_FIND_CONTAINER, name,
                                    "its control group has too many processes");
        /* ENODEV: removed meanwhile; EOPNOTSUPP: a threaded group has no processes of its own */
        return n < 0 && n != -ENODEV && n != -EOPNOTSUPP && n != -ENOENT ? fail(error, (int)-n, "read", "cgroup.procs")
                                                                         : r;
}

struct oldest {
        struct container_process process;
        pid_t parent;
        pid_t of_node; /* one in the node's mount namespace */
        struct stat node;
};

static int compare_age(pid_t pid, void *argument, struct error *error)
{
        struct oldest *oldest = argument;
        cleanup_close int proc_fd = proc_open(pid);
        uint64_t start_time;
        struct stat st;
        pid_t parent;
        pid_t same;

        (void)error;
        if (proc_fd < 0 || fstatat(proc_fd, "ns/mnt", &st, 0) < 0 || proc_start_time(proc_fd, &start_time, &same) < 0)
                return 0; /* it has ended */
        if (oldest->parent != 0 && (proc_parent(proc_fd, &parent) < 0 || parent != oldest->parent))
                return 0;
        if (st.st_ino == oldest->node.st_ino && st.st_dev == oldest->node.st_dev)
                oldest->of_node = pid;
        else if (oldest->process.pid == 0 || start_time < oldest->process.start_time ||
                 (start_time == oldest->process.start_time && pid < oldest->process.pid))
                oldest->process = (struct container_process){ .pid = pid, .start_time = start_time };
        return 0;
}

static int is_same(pid_t pid, void *argument, struct error *error)
{
        (void)error;
        return pid == *(const pid_t *)argument;
}

/*
 * Whether the process that was looked at is the one in the list: that one may have ended before, and its number be
 * another process's by then. It is if its number is in the list again, and still the same process's afterwards. 1, 0,
 * or negative errno.
 */
static int confirm(int group_fd, const char *name, const struct container_process *process, struct error *error)
{
        pid_t pid = process->pid;
        int r = control_group_each(group_fd, name, is_same, &pid, error);
        cleanup_close int proc_fd = r > 0 ? proc_open(pid) : -EBADF;
        uint64_t start_time;

        if (r <= 0)
                return r;
        return proc_fd >= 0 && proc_start_time(proc_fd, &start_time, &pid) == 0 && start_time == process->start_time;
}

/* The oldest process of this group itself, if it is older than that of the groups before. */
static int visit_group(int group_fd, const char *name, struct oldest *oldest, struct error *error)
{
        for (unsigned i = 0; i < TRIES_MAX; i++) {
                struct oldest with = *oldest;
                int r = control_group_each(group_fd, name, compare_age, &with, error);

                if (r == 0 && with.process.pid != oldest->process.pid)
                        r = confirm(group_fd, name, &with.process, error);
                else if (r == 0)
                        r = 1;
                if (r < 0)
                        return r;
                if (r > 0) {
                        *oldest = with;
                        return 0;
                }
        }
        return fail_because(error, EAGAIN, OPERATION_FIND_CONTAINER, name,
                            "its processes end faster than they can be looked at");
}

/* Look at all groups so many levels below this one. ret_groups counts them. */
static int visit_level(int group_fd, const char *name, unsigned level, struct oldest *oldest, unsigned *groups,
                       struct error *error)
{
        const struct dirent *entry;
        DIR *directory;
        int r = 0;

        if (level == 0) {
                if (++*groups > GROUPS_MAX)
                        return fail_because(error, E2BIG, OPERATION_FIND_CONTAINER, name,
                                            "it has too many control groups");
                return visit_group(group_fd, name, oldest, error);
        }
        directory = file_list(group_fd, ".");
        if (directory == NULL)
                return errno == ENOENT || errno == ENODEV ? 0 : fail(error, errno, "open", name);
        while (r == 0 && (entry = readdir(directory)) != NULL) {
                cleanup_close int below_fd = -EBADF;

                if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
                        continue;
                below_fd = control_group_open(dirfd(directory), entry->d_name);
                if (below_fd >= 0)
                        r = visit_level(below_fd, name, level - 1, oldest, groups, error);
        }
        (void)closedir(directory);
        return r;
}

int control_group_first(int group_fd, const char *name, pid_t parent, struct container_process *ret_process,
                        struct error *error)
{
        struct oldest oldest = { .parent = parent };
        unsigned groups = 1;
        int r = proc_own_namespace(OWN_MOUNTS, &oldest.node);

        if (r < 0)
                return fail(error, -r, "stat", "/proc/self/ns/mnt");
        for (unsigned level = 0; level < DEPTH_MAX && groups > 0 && oldest.process.pid == 0; level++) {
                groups = 0;
                if ((r = visit_level(group_fd, name, level, &oldest, &groups, error)) < 0)
                        return r;
        }
        *ret_process = oldest.process;
        if (oldest.process.pid != 0)
                return 1;
        ret_process->pid = oldest.of_node;
        return 0;
}

/* ---- the process that stands for a systemd service or scope, from its control group */

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
