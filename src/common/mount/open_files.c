/* SPDX-License-Identifier: Apache-2.0 */
#include "mount/open_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/text.h"

#define MAPS_LINE 128 /* of a line of maps: up to the inode */

struct scan {
        const struct mount_identity *identity; /* NULL: of every mount of the device */
        uint64_t device;
        const struct namespace_identity *mnt_ns; /* NULL: of every process */
        enum open_files_of of;
        size_t most;
        int64_t until_ms;
        struct open_files *files;
};

static void give_up(struct scan *scan)
{
        scan->files->more = true;
        scan->files->unsure = scan->files->unsure || scan->of == OPEN_FILES_OF_NAMESPACE;
}

static bool is_over(struct scan *scan)
{
        if (clock_now_ms() >= scan->until_ms)
                give_up(scan);
        return scan->files->more || (scan->most == 1 && scan->files->count == 1);
}

/*
 * Whether a link of /proc leads to anywhere on the mount: 1, 0, or negative errno. No filesystem is asked, so none can
 * make it wait; what fdinfo has of an epoll descriptor would wait for whoever waits there.
 */
static int follow(const struct scan *scan, int proc_fd, const char *link)
{
        struct mount_identity same;
        struct mount_seen seen = {};
        int r = mount_see_link(proc_fd, link, &seen);

        if (r < 0)
                return r;
        if (scan->identity == NULL)
                return seen.device == scan->device;
        same = *scan->identity;
        same.inode = seen.identity.inode;
        return mount_identity_same(&same, &seen.identity);
}

static void found(struct scan *scan, int proc_fd, pid_t pid, enum open_files_how how)
{
        struct open_files *files = scan->files;
        struct open_files_process process = { .pid = pid, .how = how };
        ssize_t n;

        for (size_t i = 0; i < files->count; i++)
                if (files->processes[i].pid == pid) {
                        files->processes[i].how |= how;
                        return;
                }
        if (files->count == scan->most) {
                files->more = true;
                return;
        }
        n = file_read(proc_fd, "comm", process.command, sizeof process.command);
        if (n < 0)
                process.command[0] = '\0';
        process.command[strcspn(process.command, "\n")] = '\0';
        files->processes[files->count] = process;
        files->count++; /* last: this process may be killed at any time */
}

/* ---- open files, working and root directory */

static bool has_file(struct scan *scan, int proc_fd)
{
        DIR *list = file_list(proc_fd, "fd");
        const struct dirent *entry;
        bool has = false;

        while (list != NULL && !has && !is_over(scan) && (entry = readdir(list)) != NULL)
                has = entry->d_name[0] != '.' && follow(scan, dirfd(list), entry->d_name) > 0;
        if (list != NULL)
                (void)closedir(list);
        return has;
}

static void look_at_files(struct scan *scan, int proc_fd, pid_t pid)
{
        static const struct {
                const char *link;
                enum open_files_how how;
        } directories[] = { { "cwd", OPEN_FILES_CWD }, { "root", OPEN_FILES_ROOT } };

        if (has_file(scan, proc_fd))
                found(scan, proc_fd, pid, OPEN_FILES_FILE);
        for (size_t i = 0; i < sizeof directories / sizeof directories[0]; i++)
                if (follow(scan, proc_fd, directories[i].link) > 0)
                        found(scan, proc_fd, pid, directories[i].how);
}

/* ---- mappings */

/* The field after the next blank; NULL: there is none. */
static char *next_field(char *text)
{
        char *blank = text != NULL ? strchr(text, ' ') : NULL;

        return blank != NULL ? blank + 1 : NULL;
}

/* "7f12..-7f13.. r--p 00000000 07:03 12 /path": whether its file is on the mount. */
static bool is_mapping(const struct scan *scan, int proc_fd, char *line)
{
        const uint64_t device = scan->device;
        char *number = next_field(next_field(next_field(line)));
        char *inode = next_field(number);
        unsigned long begin;
        unsigned long end;
        unsigned major_number;
        unsigned minor_number;
        char link[64];

        if (inode == NULL || *inode == '0')
                return false;
        major_number = (unsigned)strtoul(number, &number, 16);
        minor_number = (unsigned)strtoul(number + 1, NULL, 16);
        /* where the major number is 0, as with btrfs, this one may be another than that of the mount's files */
        if (major(device) != 0 && makedev(major_number, minor_number) != device)
                return false;
        begin = strtoul(line, &line, 16);
        end = strtoul(line + 1, NULL, 16);
        (void)snprintf(link, sizeof link, "map_files/%lx-%lx", begin, end);
        return follow(scan, proc_fd, link) > 0;
}

static void look_at_mappings(struct scan *scan, int proc_fd, pid_t pid)
{
        cleanup_close int fd = openat(proc_fd, "maps", O_RDONLY | O_CLOEXEC);
        char buffer[4096];
        char line[MAPS_LINE];
        size_t length = 0;
        bool has = false;
        ssize_t n;

        while (fd >= 0 && !has && !is_over(scan) && (n = read(fd, buffer, sizeof buffer)) > 0)
                for (ssize_t i = 0; i < n && !has; i++) {
                        if (buffer[i] != '\n') {
                                if (length < sizeof line - 1)
                                        line[length++] = buffer[i];
                                continue;
                        }
                        line[length] = '\0';
                        length = 0;
                        has = is_mapping(scan, proc_fd, line);
                }
        if (has)
                found(scan, proc_fd, pid, OPEN_FILES_MAPPED);
}

/* ---- processes */

static bool is_in_namespace(const struct scan *scan, int proc_fd)
{
        char expected[64];
        char link[64];
        ssize_t n = scan->mnt_ns != NULL ? readlinkat(proc_fd, "ns/mnt", link, sizeof link - 1) : 0;

        if (scan->mnt_ns == NULL)
                return true;
        if (n < 0)
                return false;
        link[n] = '\0';
        (void)snprintf(expected, sizeof expected, "mnt:[%llu]", (unsigned long long)scan->mnt_ns->inode);
        return strcmp(link, expected) == 0;
}

typedef void look_function(struct scan *scan, int proc_fd, pid_t pid);

static void look_at_process(struct scan *scan, look_function *look, int all_fd, const char *name)
{
        cleanup_close int proc_fd = -EBADF;
        uint64_t pid;

        if (!text_number(name, INT32_MAX, &pid))
                return;
        proc_fd = openat(all_fd, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (proc_fd >= 0 && is_in_namespace(scan, proc_fd) == (scan->of == OPEN_FILES_OF_NAMESPACE))
                look(scan, proc_fd, (pid_t)pid);
}

static void look_at_all(struct scan *scan, look_function *look)
{
        cleanup_close int all_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
        DIR *list = all_fd < 0 ? NULL : file_list(all_fd, ".");
        const struct dirent *entry;

        if (list == NULL) {
                give_up(scan);
                return;
        }
        while (!is_over(scan) && (entry = readdir(list)) != NULL)
                look_at_process(scan, look, all_fd, entry->d_name);
        (void)closedir(list);
}

/*
 * Files cost less to look at than mappings, for which a process may make its reader wait: so first the files of all. Of
 * processes elsewhere, with which a container may fill the node, the files are enough.
 */
void open_files_find(const struct mount_identity *identity, const struct namespace_identity *mnt_ns,
                     enum open_files_of of, size_t most, int64_t until_ms, struct open_files *ret_files)
{
        struct scan scan = { .identity = identity,
                             .device = identity->device,
                             .mnt_ns = mnt_ns,
                             .of = of,
                             .most = most < OPEN_FILES_MAX ? most : OPEN_FILES_MAX,
                             .until_ms = until_ms,
                             .files = ret_files };

        look_at_all(&scan, look_at_files);
        if (!ret_files->more && of == OPEN_FILES_OF_NAMESPACE)
                look_at_all(&scan, look_at_mappings);
}

void open_files_find_on(uint64_t device, size_t most, int64_t until_ms, struct open_files *ret_files)
{
        struct scan scan = { .device = device,
                             .of = OPEN_FILES_OF_NAMESPACE,
                             .most = most < OPEN_FILES_MAX ? most : OPEN_FILES_MAX,
                             .until_ms = until_ms,
                             .files = ret_files };

        look_at_all(&scan, look_at_files);
        if (!ret_files->more)
                look_at_all(&scan, look_at_mappings);
}
