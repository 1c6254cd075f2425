/* SPDX-License-Identifier: Apache-2.0 */
#include "caller_ids.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "container/user_namespace.h"

#define MAX_PATH 48
#define ANCESTORS_MAX 64

/* The user namespace of the process that this thread asked about last. Its descriptor keeps it from being another's number. */
static __thread struct {
        int fd; /* 0: none */
        dev_t device;
        ino_t inode;
        struct id_maps maps;
} last;

/* The node's ids: no map. */
static const struct id_maps node = {
        .users = { .count = 1, .ranges = { { .count = UINT32_MAX } } },
        .groups = { .count = 1, .ranges = { { .count = UINT32_MAX } } },
};

static const struct id_maps nobody; /* nothing is mapped */

static pthread_mutex_t reading = PTHREAD_MUTEX_INITIALIZER; /* id_ranges_read() has one buffer */

/* Cut to the size of the buffer: the line of groups, further down, may be long. */
static bool read_status(pid_t thread, char *ret_text, size_t size)
{
        char path[MAX_PATH];
        cleanup_close int fd = -EBADF;
        ssize_t n;

        (void)snprintf(path, sizeof path, "/proc/%d/status", thread);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        n = fd < 0 ? -1 : read(fd, ret_text, size - 1);
        ret_text[n > 0 ? n : 0] = '\0';
        return n > 0;
}

static pid_t parent_of(pid_t process)
{
        static const char line[] = "\nPPid:";
        char text[1024]; /* the name, in escapes, and a few short lines come before */
        const char *found;

        if (!read_status(process, text, sizeof text) || (found = strstr(text, line)) == NULL)
                return 0;
        return (pid_t)strtol(found + strlen(line), NULL, 10);
}

/*
 * The maps of a process if it is in that user namespace. It never returns to one from a nested one: if it is in it now, it
 * was when they were read.
 */
static bool read_maps_of(pid_t process, const struct stat *wanted)
{
        cleanup_close int proc_fd = -EBADF;
        char path[MAX_PATH];
        struct stat st;
        int r;

        (void)snprintf(path, sizeof path, "/proc/%d", process);
        proc_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (proc_fd < 0)
                return false;
        (void)pthread_mutex_lock(&reading);
        r = id_ranges_read_maps(proc_fd, &last.maps);
        (void)pthread_mutex_unlock(&reading);
        return r == 0 && fstatat(proc_fd, "ns/user", &st, 0) == 0 && st.st_ino == wanted->st_ino &&
               st.st_dev == wanted->st_dev;
}

/*
 * fd: of the user namespace of a thread. The map that counts is that of the outermost one below the node's; an ancestor
 * of a process in a nested one is in that, the container's first process at the latest.
 */
static const struct id_maps *read_maps(int fd, pid_t thread)
{
        cleanup_close int outermost = fcntl(fd, F_DUPFD_CLOEXEC, 0);
        struct stat wanted;
        uid_t owner;
        bool below;

        if (outermost < 0 || user_namespace_outermost(&outermost, &below, &owner) < 0)
                return &nobody;
        if (!below || owner != 0)
                return &node;
        if (fstat(outermost, &wanted) < 0)
                return &nobody;
        for (int i = 0; i < ANCESTORS_MAX && thread > 0; i++) {
                if (read_maps_of(thread, &wanted))
                        return &last.maps;
                thread = parent_of(thread);
        }
        return &nobody;
}

/*
 * Who may not look at it: of a process of the node itself, or of a user namespace that another user than root made. This
 * process has no CAP_SYS_PTRACE, but all capabilities in a user namespace that root made (user_namespaces(7)).
 */
static const struct id_maps *find_maps(pid_t thread)
{
        const struct id_maps *maps;
        char path[MAX_PATH];
        struct stat st;
        int fd;

        (void)snprintf(path, sizeof path, "/proc/%d/ns/user", thread);
        if (fstatat(AT_FDCWD, path, &st, 0) < 0)
                return errno == EACCES || errno == EPERM ? &node : &nobody;
        if (last.fd > 0 && st.st_ino == last.inode && st.st_dev == last.device)
                return &last.maps;
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return &nobody;
        if (last.fd > 0)
                (void)close(last.fd); /* only looked at */
        last.fd = 0;
        maps = read_maps(fd, thread);
        if (maps != &last.maps) {
                (void)close(fd); /* only looked at */
                return maps;
        }
        last.fd = fd;
        last.device = st.st_dev;
        last.inode = st.st_ino;
        return maps;
}

/* The last of the four ids in a line of /proc/PID/status: that for files. */
static bool read_id(const char *text, const char *line, uint32_t *ret_id)
{
        const char *next = strstr(text, line);
        char *end;

        if (next == NULL)
                return false;
        next += strlen(line);
        for (int i = 0; i < 4; i++) {
                *ret_id = (uint32_t)strtoul(next, &end, 10);
                if (end == next)
                        return false;
                next = end;
        }
        return true;
}

static bool find(pid_t thread, uint32_t *ret_user, uint32_t *ret_group)
{
        const struct id_maps *maps;
        char text[1024]; /* the name, in escapes, and seven short lines come before */

        if (thread <= 0 || !read_status(thread, text, sizeof text) || !read_id(text, "\nUid:", ret_user) ||
            !read_id(text, "\nGid:", ret_group))
                return false;
        maps = find_maps(thread);
        return id_ranges_map(maps->users.ranges, maps->users.count, /* inside= */ false, ret_user) &&
               id_ranges_map(maps->groups.ranges, maps->groups.count, /* inside= */ false, ret_group);
}

void caller_ids_put(struct fuse_in_header *header)
{
        uint32_t user;
        uint32_t group;
        bool found = find((pid_t)header->pid, &user, &group);

        header->uid = found ? user : CALLER_NOBODY;
        header->gid = found ? group : CALLER_NOBODY;
}

const struct id_map *caller_ids_groups(pid_t thread)
{
        const struct id_maps *maps = find_maps(thread);

        return maps == &nobody ? NULL : &maps->groups;
}
