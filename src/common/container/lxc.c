/* SPDX-License-Identifier: Apache-2.0 */
#include "container/runtimes.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/text.h"
#include "container/control_group.h"
#include "process/proc.h"

#define TRIES 10 /* names with -1, -2, ... that are looked at */
#define DEFAULT_DIRECTORY "/var/lib/lxc"

struct monitor {
        const char *directory;
        const char *name;
        pid_t pid;
};

/* One of the arguments is this text, or ends with it after an option ("--name=web", "-nweb"). */
static bool has_argument(const char *arguments, size_t length, const char *text)
{
        for (const char *argument = arguments; argument < arguments + length; argument += strlen(argument) + 1)
                if (strcmp(argument, text) == 0 ||
                    (argument[0] == '-' && text_ends(argument, text) &&
                     (strlen(argument) == strlen(text) + 2 || argument[strlen(argument) - strlen(text) - 1] == '=')))
                        return true;
        return false;
}

/* The value of an option that names a directory of containers: -P, also after other letters, or --lxcpath. Else NULL. */
static const char *directory_of(const char *argument, const char *end)
{
        static const char with_value[] = "PnfcLpsol"; /* what follows one of these is its value */
        const char *next = argument + strlen(argument) + 1;
        const char *value = NULL;

        if (text_starts(argument, "--lx")) /* getopt_long() takes the beginning of an option, too */
                value = strchr(argument, '=') != NULL ? strchr(argument, '=') + 1 : next;
        else if (argument[0] == '-' && argument[1] != '-') {
                const char *letter = argument + strcspn(argument, with_value);

                if (*letter == 'P')
                        value = letter[1] != '\0' ? letter + 1 : next;
        }
        return value != NULL && value >= end ? "" : value;
}

/* Without an option for it, lxc-start takes the default directory. */
static bool is_in_default(const char *arguments, size_t length)
{
        const char *end = arguments + length;
        char path[PATH_MAX];

        for (const char *argument = arguments; argument < end; argument += strlen(argument) + 1) {
                const char *value = directory_of(argument, end);

                if (value != NULL && (text_path_normal(value, path) < 0 || strcmp(path, DEFAULT_DIRECTORY) != 0))
                        return false;
        }
        return true;
}

/* A monitor in the background has a title; one in the foreground (lxc-start -F) is lxc-start, with its arguments. */
static bool is_titled(const char *arguments, size_t length, const struct monitor *monitor)
{
        static const char title[] = "[lxc monitor] ";
        char wanted[PATH_MAX + 160];

        if (text_starts(arguments, title)) {
                (void)snprintf(wanted, sizeof wanted, "%s%s %s", title, monitor->directory, monitor->name);
                return strcmp(arguments, wanted) == 0;
        }
        return has_argument(arguments, length, monitor->name) &&
               (strcmp(monitor->directory, DEFAULT_DIRECTORY) == 0
                        ? is_in_default(arguments, length)
                        : has_argument(arguments, length, monitor->directory));
}

static int match_monitor(pid_t pid, void *argument, struct error *error)
{
        struct monitor *monitor = argument;
        cleanup_close int proc_fd = proc_open(pid);
        char arguments[8192];
        struct stat st;
        ssize_t n;

        (void)error;
        n = proc_fd < 0 || fstat(proc_fd, &st) < 0 || st.st_uid != 0
                    ? -ESRCH
                    : file_read(proc_fd, "cmdline", arguments, sizeof arguments);
        if (n <= 0 || !is_titled(arguments, (size_t)n, monitor))
                return 0;
        monitor->pid = pid;
        return 1;
}

/* Open the group KIND.NAME, or KIND.NAME-1, ...: a descriptor or negative errno. */
static int open_group(int root_fd, const char *kind, const char *name, unsigned number)
{
        char path[NAME_MAX + 1];

        if (number == 0)
                (void)snprintf(path, sizeof path, "lxc.%s.%s", kind, name);
        else
                (void)snprintf(path, sizeof path, "lxc.%s.%s-%u", kind, name, number);
        return control_group_open(root_fd, path);
}

int lxc_find(const char *directory, const char *name, struct container_process *ret_process, struct error *error)
{
        struct monitor monitor = { .directory = directory, .name = name };
        cleanup_close int root_fd = control_group_open_root();
        int r = 0;

        *ret_process = (struct container_process){};
        if (root_fd < 0)
                return root_fd == -ENOENT ? 0 : fail(error, -root_fd, "open", "/sys/fs/cgroup");
        for (unsigned i = 0; r == 0 && i < TRIES; i++) {
                cleanup_close int group_fd = open_group(root_fd, "monitor", name, i);

                if (group_fd >= 0)
                        r = control_group_each(group_fd, name, match_monitor, &monitor, error);
        }
        if (r <= 0)
                return r;
        r = 0;
        for (unsigned i = 0; r == 0 && i < TRIES; i++) {
                cleanup_close int group_fd = open_group(root_fd, "payload", name, i);

                if (group_fd >= 0)
                        r = control_group_first(group_fd, name, monitor.pid, ret_process, error);
        }
        if (r == 0)
                ret_process->pid = 0;
        return r < 0 ? r : 0;
}
