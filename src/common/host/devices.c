/* SPDX-License-Identifier: Apache-2.0 */
#include "host/probes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/loop.h>
#include <linux/magic.h>
#include <linux/major.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/text.h"
#include "block/loop_guard.h"
#include "container/device_bpf.h"

/* Their minor numbers (Documentation/admin-guide/devices.txt of the kernel). */
#define MISC_FUSE 229
#define MISC_LOOP_CONTROL 237

#define NAME_MS 100 /* until a new device is in /dev */

/* Whether a driver has registered a misc device, by its name there. Nothing is loaded. */
static bool misc_is_registered(const char *name)
{
        return kernel_lists("/proc/misc", ' ', name);
}

bool device_mapper_is_registered(void)
{
        return misc_is_registered("device-mapper");
}

static void tell_failed_control(const char *path, int errnum, const char *module, struct host_finding *ret_finding)
{
        struct host_finding of_module = {};

        if (errnum == EACCES || errnum == EPERM) {
                host_found_call(ret_finding, errnum, path);
                return;
        }
        module_find(module, &of_module);
        host_found(ret_finding, HOST_MISSING, "%s: %s (module %s: %s)", path, error_text(errnum), module,
                   of_module.found);
}

static void open_control(const char *path, const char *module, struct host_finding *ret_finding)
{
        cleanup_close int fd = open(path, O_RDWR | O_CLOEXEC);

        if (fd >= 0)
                host_found(ret_finding, HOST_OK, "%s can be opened", path);
        else
                tell_failed_control(path, errno, module, ret_finding);
}

/*
 * A control device, of this minor number: it is there, or its module could be loaded. Its node may be there without its
 * driver (kmod's static nodes): the kernel would load the module for whoever opens it.
 */
static void find_control(const char *path, unsigned minor, const char *name, const char *module,
                         struct host_finding *ret_finding)
{
        struct stat st;

        if (stat(path, &st) < 0)
                tell_failed_control(path, errno, module, ret_finding);
        else if (!S_ISCHR(st.st_mode) || st.st_rdev != makedev(MISC_MAJOR, minor))
                host_found(ret_finding, HOST_MISSING, "%s is another device, or none", path);
        else if (misc_is_registered(name))
                open_control(path, module, ret_finding);
        else
                module_find(module, ret_finding);
}

void probe_fuse(const char *argument, struct host_finding *ret_finding)
{
        (void)argument;
        find_control("/dev/fuse", MISC_FUSE, "fuse", "fuse", ret_finding);
}

/* Of the kernel, and not in /dev; it may be gone by now. */
static bool is_unnamed(const char *name)
{
        char device[NAME_MAX + 16];
        char path[NAME_MAX + 16];

        (void)snprintf(device, sizeof device, "/sys/block/%s", name);
        (void)snprintf(path, sizeof path, "/dev/%s", name);
        return access(path, F_OK) < 0 && access(device, F_OK) == 0;
}

/* Whether there is a loop device that stays so. */
static bool find_unnamed_loop(char ret_name[NAME_MAX + 1])
{
        DIR *list = opendir("/sys/block");
        const struct dirent *entry;
        bool found = false;

        while (list != NULL && !found && (entry = readdir(list)) != NULL) {
                if (!text_starts(entry->d_name, "loop") || !is_unnamed(entry->d_name))
                        continue;
                clock_pause_ms(NAME_MS);
                found = is_unnamed(entry->d_name) && text_copy(ret_name, NAME_MAX + 1, entry->d_name);
        }
        if (list != NULL)
                (void)closedir(list); /* only read from */
        return found;
}

/* In a container /dev may be one of its own, with what was there when it started: then no new loop device can be opened. */
void probe_loop(const char *argument, struct host_finding *ret_finding)
{
        char name[NAME_MAX + 1];

        (void)argument;
        find_control("/dev/loop-control", MISC_LOOP_CONTROL, "loop-control", "loop", ret_finding);
        if (ret_finding->state == HOST_OK && find_unnamed_loop(name))
                host_found(ret_finding, HOST_MISSING,
                           "the kernel has /dev/%.64s, and /dev has not: it is not the machine's", name);
}

/* A loop device that is bound to no file; -ENODEV: there is none that could be opened. */
static int open_unbound_loop(char *ret_path)
{
        DIR *list = opendir("/sys/block"); /* not /dev: opening a node can make its device */
        const struct dirent *entry;
        int fd = -ENODEV;

        while (list != NULL && fd < 0 && (entry = readdir(list)) != NULL) {
                uint64_t number;

                if (!text_starts(entry->d_name, "loop") || !text_number(entry->d_name + 4, LOOP_GUARD_END, &number) ||
                    loop_guard_is_bound((unsigned)number))
                        continue;
                (void)snprintf(ret_path, PATH_MAX, "/dev/loop%u", (unsigned)number);
                fd = open(ret_path, O_RDONLY | O_CLOEXEC);
        }
        if (list != NULL)
                (void)closedir(list); /* only read from */
        return fd < 0 ? -ENODEV : fd;
}

/* The kernel that has LOOP_CONFIGURE refuses a file that is none before it looks at the device. */
void probe_loop_configure(const char *argument, struct host_finding *ret_finding)
{
        const struct loop_config config = { .fd = (uint32_t)-1 };
        char path[PATH_MAX];
        cleanup_close int fd = open_unbound_loop(path);

        (void)argument;
        if (fd < 0)
                host_found(ret_finding, HOST_UNKNOWN, "not tried: there is no free loop device");
        else if (ioctl(fd, LOOP_CONFIGURE, &config) < 0 && errno == EBADF)
                host_found(ret_finding, HOST_OK, "the kernel has it (asked of %s)", path);
        else if (errno == EINVAL || errno == ENOTTY)
                host_found(ret_finding, HOST_MISSING, "the kernel does not have it (asked of %s)", path);
        else
                host_found_call(ret_finding, errno, "ioctl LOOP_CONFIGURE");
}

void probe_device_mapper(const char *argument, struct host_finding *ret_finding)
{
        (void)argument;
        if (device_mapper_is_registered())
                host_found(ret_finding, HOST_OK, "the kernel has it");
        else
                module_find("dm_mod", ret_finding);
}

void probe_pmem_regions(const char *argument, struct host_finding *ret_finding)
{
        DIR *list = opendir("/sys/bus/nd/devices");
        const struct dirent *entry;
        unsigned count = 0;

        (void)argument;
        while (list != NULL && (entry = readdir(list)) != NULL)
                count += text_starts(entry->d_name, "region") ? 1 : 0;
        if (list != NULL)
                (void)closedir(list); /* only read from */
        if (count > 0)
                host_found(ret_finding, HOST_OK, "%u %s", count, count == 1 ? "region" : "regions");
        else
                host_found(ret_finding, HOST_MISSING, "there is no region of persistent memory");
}

/* Version 2 asks programs, whose list is read here; version 1 has a controller of its own. */
void probe_device_cgroup(const char *argument, struct host_finding *ret_finding)
{
        cleanup_close int fd = open("/sys/fs/cgroup", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        struct error error = {};
        struct statfs fs;
        bool denies;

        (void)argument;
        if (fd < 0 || fstatfs(fd, &fs) < 0)
                host_found(ret_finding, HOST_MISSING, "/sys/fs/cgroup: %s", error_text(errno));
        else if ((uint64_t)fs.f_type != CGROUP2_SUPER_MAGIC)
                host_found(ret_finding,
                           faccessat(fd, "devices/devices.allow", F_OK, 0) == 0 ||
                                           faccessat(fd, "devices/cgroup.procs", F_OK, 0) == 0
                                   ? HOST_OK
                                   : HOST_MISSING,
                           "control groups of version 1: /sys/fs/cgroup/devices");
        else if (device_bpf_denies(fd, "/sys/fs/cgroup", makedev(LOOP_MAJOR, 0), DEVICE_READ, &denies, &error) < 0)
                host_found_error(ret_finding, &error);
        else
                host_found(ret_finding, HOST_OK, "control groups of version 2: device programs can be listed");
}

/* ---- what the kernel has, or could load: its filesystems and modules. Nothing is loaded */

/*
 * A line of modules.dep or modules.builtin names a file, "kernel/fs/nfs/nfs.ko.xz: ...": whether it is this module's.
 */
static bool names_module(const char *line, const char *name)
{
        const char *file;
        size_t i;

        file = line + strcspn(line, ":\n");
        while (file > line && file[-1] != '/')
                file--;
        for (i = 0; name[i] != '\0'; i++)
                if (file[i] != name[i] && !(name[i] == '_' && file[i] == '-'))
                        return false;
        return strncmp(file + i, ".ko", 3) == 0;
}

/* Whether a list of the running kernel's modules names it: 1 or 0; negative errno where there is no such list. */
static int list_has(const char *list, const char *name)
{
        struct utsname kernel;
        char path[PATH_MAX];
        char *line = NULL;
        size_t size = 0;
        int found = 0;
        FILE *file;

        if (uname(&kernel) < 0)
                return -errno;
        (void)snprintf(path, sizeof path, "/lib/modules/%s/%s", kernel.release, list);
        file = fopen(path, "re");
        if (file == NULL)
                return -errno;
        while (found == 0 && getline(&line, &size, file) >= 0)
                found = names_module(line, name) ? 1 : 0;
        free(line);
        (void)fclose(file); /* only read from */
        return found;
}

/* Since kernel.modules_disabled was set, which is for as long as the kernel runs. */
static bool is_closed(void)
{
        char text[8];

        return file_read(AT_FDCWD, "/proc/sys/kernel/modules_disabled", text, sizeof text) > 0 && text[0] == '1';
}

void module_find(const char *name, struct host_finding *ret_finding)
{
        char path[PATH_MAX];
        int r;

        (void)snprintf(path, sizeof path, "/sys/module/%s", name);
        if (access(path, F_OK) == 0) {
                host_found(ret_finding, HOST_OK, "the kernel has it");
                return;
        }
        if (list_has("modules.builtin", name) == 1) {
                host_found(ret_finding, HOST_OK, "it is built into the kernel");
                return;
        }
        r = access("/proc/modules", F_OK) < 0 || is_closed() ? -ENOSYS : list_has("modules.dep", name);
        if (r == 1)
                host_found(ret_finding, HOST_OK, "module %s is installed, and not loaded yet", name);
        else if (r == 0)
                host_found(ret_finding, HOST_MISSING, "the kernel does not have it, and module %s is not installed",
                           name);
        else if (r == -ENOSYS)
                host_found(ret_finding, HOST_MISSING, "the kernel does not have it, and loads no modules");
        else
                host_found(ret_finding, HOST_UNKNOWN,
                           "the kernel does not have it yet; its modules cannot be seen here");
}

bool kernel_lists(const char *list, char before, const char *name)
{
        char text[8192];
        char end[80];

        (void)snprintf(end, sizeof end, "%c%s\n", before, name);
        return file_read(AT_FDCWD, list, text, sizeof text) >= 0 && strstr(text, end) != NULL;
}

bool filesystem_is_registered(const char *type)
{
        return kernel_lists("/proc/filesystems", '\t', type);
}

void probe_module(const char *argument, struct host_finding *ret_finding)
{
        module_find(argument, ret_finding);
}

void probe_filesystem(const char *argument, struct host_finding *ret_finding)
{
        if (filesystem_is_registered(argument))
                host_found(ret_finding, HOST_OK, "the kernel has it");
        else
                module_find(argument, ret_finding);
}
