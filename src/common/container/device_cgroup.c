/* SPDX-License-Identifier: Apache-2.0 */
#include "container/device_cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/text.h"
#include "container/device_bpf.h"

#define DEPTH_MAX 8 /* of control groups below a container's */
#define LIST_MAX_BYTES 65536

/* Whether a list of controllers, separated by commas, has this one; version 2 has the list "". */
static bool names_controller(const char *names, const char *controller)
{
        size_t length = strlen(controller);

        if (length == 0)
                return names[0] == '\0';
        for (const char *found = names; (found = strstr(found, controller)) != NULL; found += length)
                if ((found == names || found[-1] == ',') && (found[length] == '\0' || found[length] == ','))
                        return true;
        return false;
}

/*
 * The path of the container's process in a hierarchy, from /proc/PID/cgroup: "12:devices:/path" or "0::/path".
 * 0; -ENOENT none; or another error.
 */
static int find_path(const struct container *container, const char *controller, char *ret_path)
{
        static char text[16384];
        ssize_t n = file_read(container->proc_fd, "cgroup", text, sizeof text);
        char *line = text;

        if (n < 0)
                return n == -ENOENT ? -ESRCH : (int)n;
        while (*line != '\0') {
                char *end = line + strcspn(line, "\n");
                char *names = strchr(line, ':');
                char *path = names == NULL ? NULL : strchr(names + 1, ':');

                if (*end == '\n')
                        *end++ = '\0';
                if (path != NULL) {
                        *path++ = '\0';
                        if (names_controller(names + 1, controller) && text_climbs(path))
                                return -EOPNOTSUPP; /* outside of this cgroup namespace */
                        if (names_controller(names + 1, controller))
                                return text_copy(ret_path, PATH_MAX, path) ? 0 : -ENAMETOOLONG;
                }
                line = end;
        }
        return -ENOENT;
}

/* Open the root of the version 2 hierarchy; -ENOENT: it is not mounted; or another error. */
static int open_unified(void)
{
        static const char *const places[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };

        for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
                cleanup_close int fd = open(places[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                struct statfs fs;

                if ((fd < 0 && errno != ENOENT) || (fd >= 0 && fstatfs(fd, &fs) < 0))
                        return -errno;
                if (fd >= 0 && fs.f_type == CGROUP2_SUPER_MAGIC)
                        return fd_take(&fd);
        }
        return -ENOENT;
}

static int open_below(int root_fd, const char *path)
{
        int fd = openat(root_fd, path[1] == '\0' ? "." : path + 1, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        return fd < 0 ? -errno : fd;
}

static bool is_member(const struct container *container, const char *pid)
{
        char path[64];
        struct stat theirs;
        struct stat ours;

        if (strcmp(pid, "0") == 0)
                return false; /* a process outside of this pid namespace */
        (void)snprintf(path, sizeof path, "/proc/%.16s/ns/mnt", pid);
        if (stat(path, &theirs) < 0)
                return true; /* it ended */
        if (theirs.st_ino == container->mnt_ns.inode)
                return true;
        if (!container->own_user_ns || fstat(container->user_ns_fd, &ours) < 0)
                return false;
        (void)snprintf(path, sizeof path, "/proc/%.16s/ns/user", pid);
        return stat(path, &theirs) < 0 || theirs.st_ino == ours.st_ino;
}

/* Whether all processes of a control group, and of the groups below it, belong to the container. */
static bool is_containers_own(const struct container *container, int group_fd, unsigned depth)
{
        char *text = malloc(LIST_MAX_BYTES);
        DIR *directory = file_list(group_fd, ".");
        const struct dirent *entry;
        bool own = text != NULL && directory != NULL && depth < DEPTH_MAX &&
                   file_read(group_fd, "cgroup.procs", text, LIST_MAX_BYTES) >= 0;

        for (char *pid = text; own && *pid != '\0';) {
                char *end = pid + strcspn(pid, "\n");

                if (*end == '\n')
                        *end++ = '\0';
                own = is_member(container, pid);
                pid = end;
        }
        free(text);
        while (own && (entry = readdir(directory)) != NULL) {
                cleanup_close int below_fd = -EBADF;

                if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
                        continue;
                below_fd = openat(group_fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                own = below_fd < 0 || is_containers_own(container, below_fd, depth + 1);
        }
        if (directory != NULL)
                (void)closedir(directory);
        return own;
}

static int fail_shared(const char *group, struct error *error)
{
        return fail_because(error, EPERM, OPERATION_ALLOW_DEVICE, group,
                            "the control group %s denies the device and is shared with other containers", group);
}

/*
 * Version 2: every level from the container's group up to the root can deny the device. With set, each level that
 * denies it gets the grant (or all lose theirs); without, only check whether that is allowed.
 */
static int walk_unified(const struct container *container, uint64_t device, unsigned access, bool set,
                        struct error *error)
{
        cleanup_close int root_fd = open_unified();
        char path[PATH_MAX];
        int r = root_fd < 0 ? root_fd : find_path(container, "", path);

        if (r == -ENOENT || (r == -EOPNOTSUPP && access == DEVICE_NONE))
                return 0;
        if (r < 0)
                return fail(error, -r, OPERATION_ALLOW_DEVICE, "/sys/fs/cgroup");
        for (;;) {
                cleanup_close int group_fd = open_below(root_fd, path);
                char *slash = strrchr(path, '/');
                bool denies = false;

                if (group_fd < 0 && group_fd != -ENOENT)
                        return fail(error, -group_fd, "open", path);
                if (group_fd < 0 && path[1] != '\0') { /* it is in another one by now, below the same parent perhaps */
                        slash[slash == path ? 1 : 0] = '\0';
                        continue;
                }
                r = device_bpf_denies(group_fd, path, device, access, &denies, error);
                if (r == 0 && denies && !is_containers_own(container, group_fd, 0))
                        return fail_shared(path, error);
                if (r == 0 && set)
                        r = device_bpf_grant(group_fd, path, device, access, error);
                if (r < 0 || path[1] == '\0')
                        return r;
                slash[slash == path ? 1 : 0] = '\0';
        }
}

/* Open the group of version 1; -ENOENT: that hierarchy is not used. */
static int open_version1(const struct container *container, char *ret_path)
{
        cleanup_close int root_fd = open("/sys/fs/cgroup/devices", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        int r;

        ret_path[0] = '\0';
        if (root_fd < 0)
                return error_negative(errno);
        r = find_path(container, "devices", ret_path);
        return r < 0 ? r : open_below(root_fd, ret_path);
}

/* The access to a device that the rules of a devices.list ("b 7:3 rw") allow. */
static unsigned rules_give(const char *list, uint64_t device)
{
        unsigned given = DEVICE_NONE;

        while (*list != '\0') {
                char type = '\0';
                char major_text[16] = "";
                char minor_text[16] = "";
                char access[8] = "";
                char number[16];
                bool covers;

                if (sscanf(list, "%c %15[0-9*]:%15[0-9*] %7[rwm]", &type, major_text, minor_text, access) == 4) {
                        (void)snprintf(number, sizeof number, "%u", major(device));
                        covers = strcmp(major_text, "*") == 0 || strcmp(major_text, number) == 0;
                        (void)snprintf(number, sizeof number, "%u", minor(device));
                        covers = covers && (strcmp(minor_text, "*") == 0 || strcmp(minor_text, number) == 0);
                        if (type == 'a' || (type == 'b' && covers))
                                given |= (strchr(access, 'r') != NULL ? DEVICE_READ : 0U) |
                                         (strchr(access, 'w') != NULL ? DEVICE_WRITE : 0U);
                }
                list += strcspn(list, "\n");
                list += *list == '\n';
        }
        return given;
}

static int read_version1(int group_fd, uint64_t device, unsigned *ret_given)
{
        char *list = malloc(LIST_MAX_BYTES);
        ssize_t n = list == NULL ? -ENOMEM : file_read(group_fd, "devices.list", list, LIST_MAX_BYTES);

        if (n >= 0)
                *ret_given = rules_give(list, device);
        free(list);
        return n < 0 ? (int)n : 0;
}

static int write_rule(int group_fd, const char *file, uint64_t device, unsigned access)
{
        cleanup_close int fd = -EBADF;
        char rule[48];

        if (access == DEVICE_NONE)
                return 0;
        fd = openat(group_fd, file, O_WRONLY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        (void)snprintf(rule, sizeof rule, "b %u:%u %s%s", major(device), minor(device),
                       (access & DEVICE_READ) != 0 ? "r" : "", (access & DEVICE_WRITE) != 0 ? "w" : "");
        return file_write_all(fd, rule, strlen(rule));
}

int device_cgroup_look(const struct container *container, uint64_t device, unsigned access, unsigned *ret_version1,
                       struct error *error)
{
        char path[PATH_MAX];
        cleanup_close int group_fd = open_version1(container, path);
        int r = 0;

        *ret_version1 = DEVICE_READ | DEVICE_WRITE;
        if (group_fd >= 0)
                r = read_version1(group_fd, device, ret_version1);
        else if (group_fd != -ENOENT)
                r = group_fd;
        if (r < 0)
                return fail(error, -r, OPERATION_ALLOW_DEVICE, path);
        if ((access & ~*ret_version1) != 0 && !is_containers_own(container, group_fd, 0))
                return fail_shared(path, error);
        return walk_unified(container, device, access, /* set= */ false, error);
}

/*
 * Version 1. Never change a group that has other processes than the container's: neither to allow nor, above all, to
 * deny, which could affect the whole node (a process that was moved into the container can still be in a group of the
 * node).
 */
static int set_version1(const struct container *container, uint64_t device, unsigned access, unsigned before,
                        struct error *error)
{
        char path[PATH_MAX];
        cleanup_close int group_fd = open_version1(container, path);
        unsigned given = DEVICE_NONE;
        int r = group_fd < 0 ? group_fd : read_version1(group_fd, device, &given);

        if (r == -ENOENT || (r == -EOPNOTSUPP && access == DEVICE_NONE))
                return 0;
        if (r < 0)
                return fail(error, -r, OPERATION_ALLOW_DEVICE, path);
        if ((access & ~given) == 0 && (given & ~(access | before)) == 0)
                return 0;
        if (strcmp(path, "/") == 0 || !is_containers_own(container, group_fd, 0))
                return (access & ~given) != 0 ? fail_shared(path, error) : 0;
        r = write_rule(group_fd, "devices.allow", device, access & ~given);
        if (r == 0)
                r = write_rule(group_fd, "devices.deny", device, given & ~(access | before));
        if (r == -EPERM)
                return fail_because(error, EPERM, OPERATION_ALLOW_DEVICE, path,
                                    "a control group above %s denies the device", path);
        return r < 0 ? fail(error, -r, OPERATION_ALLOW_DEVICE, path) : 0;
}

int device_cgroup_set(const struct container *container, uint64_t device, unsigned access, unsigned before,
                      struct error *error)
{
        int r = set_version1(container, device, access, before, error);

        return r < 0 ? r : walk_unified(container, device, access, /* set= */ true, error);
}
