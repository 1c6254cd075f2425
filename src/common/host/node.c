/* SPDX-License-Identifier: Apache-2.0 */
/* node.c - probes of what is around flexgraft on the node (host/probes.h). */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "host/probes.h"

#define PLUGINS "/usr/libexec/kubernetes/kubelet-plugins/volume/exec" /* kubelet's --volume-plugin-dir, its default */
#define HOOKS "/usr/share/containers/oci/hooks.d"
#define HOOK "flexgraft.json"        /* as "make install" names it */
#define CDI "flexgraft-storage.json" /* as "mount-hook --cdi" does */

static bool has_file(const char *const *paths, size_t count, const char **ret_path)
{
        for (size_t i = 0; i < count; i++)
                if (access(paths[i], F_OK) == 0) {
                        *ret_path = paths[i];
                        return true;
                }
        return false;
}

static const char *cdi_dir = "";

void hooks_look_in(const char *directory)
{
        cdi_dir = directory;
}

/*
 * Podman and CRI-O read HOOKS by default, other directories where their configuration names them. Docker and containerd
 * know no such directory, but devices (provision/cdi.h), in the directories that all engines read by default, or in the
 * one that our configuration names for what theirs reads.
 */
void probe_hooks(const char *argument, struct host_finding *ret_finding)
{
        static const char *const others[] = { "/etc/containers/oci/hooks.d/" HOOK,
                                              "/usr/local/share/containers/oci/hooks.d/" HOOK };
        static char configured[PATH_MAX + sizeof CDI];
        const char *const devices[] = { configured, "/etc/cdi/" CDI, "/run/cdi/" CDI };
        const char *path;

        (void)argument;
        (void)snprintf(configured, sizeof configured, "%s/" CDI, cdi_dir[0] != '\0' ? cdi_dir : "/etc/cdi");
        if (access(HOOKS "/" HOOK, F_OK) == 0)
                host_found(ret_finding, HOST_OK, HOOKS "/" HOOK);
        else if (has_file(devices, sizeof devices / sizeof devices[0], &path))
                host_found(ret_finding, HOST_OK, "%s: for containers that ask for a device of flexgraft.io", path);
        else if (has_file(others, sizeof others / sizeof others[0], &path))
                host_found(ret_finding, HOST_UNKNOWN,
                           "%s: read only where hooks_dir or --hooks-dir names its directory", path);
        else
                host_found(ret_finding, HOST_MISSING, "there is no " HOOKS "/" HOOK " and no %s", configured);
}

/*
 * Whether a directory has an entry of a driver of ours: NAME~flexgraft, or VENDOR~KIND/KIND with our verbs beside it.
 */
static bool has_driver(const char *directory)
{
        DIR *list = opendir(directory);
        const struct dirent *entry;
        char path[512];
        bool found = false;

        while (list != NULL && !found && (entry = readdir(list)) != NULL) {
                (void)snprintf(path, sizeof path, "%s/%.255s/verbs/mountdevice", directory, entry->d_name);
                found = access(path, F_OK) == 0;
        }
        if (list != NULL)
                (void)closedir(list); /* only read from */
        return found;
}

void probe_kubelet(const char *argument, struct host_finding *ret_finding)
{
        (void)argument;
        if (access(PLUGINS, F_OK) < 0)
                host_found(ret_finding, HOST_UNKNOWN, "there is no " PLUGINS);
        else if (access(PLUGINS, W_OK) < 0 && errno == EROFS)
                host_found(ret_finding, HOST_MISSING, PLUGINS " is on a read-only filesystem");
        else if (has_driver(PLUGINS))
                host_found(ret_finding, HOST_OK, "the driver is installed in " PLUGINS);
        else
                host_found(ret_finding, HOST_MISSING, "the driver is not installed in " PLUGINS);
}

static bool file_says(const char *path, const char *text)
{
        char content[64];

        return file_read(AT_FDCWD, path, content, sizeof content) > 0 && text_starts(content, text);
}

void probe_apparmor(const char *argument, struct host_finding *ret_finding)
{
        char label[256];
        ssize_t length;

        (void)argument;
        if (!file_says("/sys/module/apparmor/parameters/enabled", "Y")) {
                host_found(ret_finding, HOST_OK, "the kernel does not have it, or it is off");
                return;
        }
        length = file_read(AT_FDCWD, "/proc/self/attr/current", label, sizeof label);
        if (length <= 0 || text_starts(label, "unconfined")) {
                host_found(ret_finding, HOST_OK, "it is on, and this program is not confined");
                return;
        }
        label[strcspn(label, "\n")] = '\0';
        host_found(ret_finding, HOST_UNKNOWN, "this program is confined by %s", label);
}

void probe_selinux(const char *argument, struct host_finding *ret_finding)
{
        (void)argument;
        if (file_says("/sys/fs/selinux/enforce", "1"))
                host_found(ret_finding, HOST_UNKNOWN, "it is enforcing");
        else if (file_says("/sys/fs/selinux/enforce", "0"))
                host_found(ret_finding, HOST_OK, "it is permissive");
        else
                host_found(ret_finding, HOST_OK, "the kernel does not have it, or it is off");
}

/* What was written in the future was written by a clock that was right, or this one is not. */
void probe_clock(const char *argument, struct host_finding *ret_finding)
{
        struct timespec now;
        struct stat st;

        (void)argument;
        if (clock_gettime(CLOCK_REALTIME, &now) < 0 || stat("/proc/self/exe", &st) < 0)
                host_found_call(ret_finding, errno, "clock_gettime");
        else if (now.tv_sec < st.st_mtime)
                host_found(ret_finding, HOST_MISSING, "it is earlier than the date of this program's file");
        else
                host_found(ret_finding, HOST_OK, "it is later than the date of this program's file");
}
