/* SPDX-License-Identifier: Apache-2.0 */
#include "host/modules.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/file.h"
#include "host/probes.h"

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
        r = access("/proc/modules", F_OK) < 0 ? -ENOSYS : list_has("modules.dep", name);
        if (r == 1)
                host_found(ret_finding, HOST_OK, "module %s is installed, and not loaded yet", name);
        else if (r == 0)
                host_found(ret_finding, HOST_MISSING, "the kernel has it not, and module %s is not installed", name);
        else if (r == -ENOSYS)
                host_found(ret_finding, HOST_MISSING, "the kernel has it not, and loads no modules");
        else
                host_found(ret_finding, HOST_UNKNOWN, "the kernel has it not yet; its modules are not to be seen here");
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
