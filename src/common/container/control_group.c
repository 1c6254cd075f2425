/* SPDX-License-Identifier: Apache-2.0 */
#include "container/control_group.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/fd.h"
#include "base/file.h"
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
