/* SPDX-License-Identifier: Apache-2.0 */
#include "caller_ids.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "container/user_namespace.h"
#include "process/id_ranges.h"
#include "process/proc.h"

#define MAX_PATH 48
#define ANCESTORS_MAX 64

/*
 * What a thread has when it first looks at a process. The C library writes the whole of each thread's variables when the
 * thread begins, and most threads never look.
 */
struct looks {
        /* The user namespace of the process that was asked about last. Its descriptor keeps it from being another's number. */
        struct {
                int fd; /* 0: none */
                dev_t device;
                ino_t inode;
                const struct id_maps *counts; /* node, or maps */
                struct id_maps maps;
        } last;
        struct caller_ids found;
        char text[ID_RANGES_TEXT_SIZE]; /* of a file in /proc */
};
static __thread struct looks *own; /* NULL: it has not looked */

static struct caller_ids no_one = { .uid = CALLER_NOBODY, .gid = CALLER_NOBODY }; /* never changed */

/* The node's ids: no map. */
static const struct id_maps node = {
        .users = { .count = 1, .ranges = { { .count = UINT32_MAX } } },
        .groups = { .count = 1, .ranges = { { .count = UINT32_MAX } } },
};

static const struct id_maps nobody; /* nothing is mapped */

int caller_ids_begin(void)
{
        struct stat ignored;

        own = NULL;                                     /* the last daemon's */
        return proc_own_namespace(OWN_USERS, &ignored); /* now, with one thread: it notes it */
}

/* False: there is no memory. */
static bool can_look(void)
{
        if (own == NULL)
                own = calloc(1, sizeof *own);
        return own != NULL;
}

static pid_t parent_of(pid_t process)
{
        static const char line[] = "\nPPid:";
        const char *start;

        if (!proc_status(process, own->text, sizeof own->text) || (start = strstr(own->text, line)) == NULL)
                return 0;
        return (pid_t)strtol(start + strlen(line), NULL, 10);
}

/* False: they cannot be read, or there are none yet. */
static bool read_map(int proc_fd, const char *name, struct id_map *ret_map)
{
        if (file_read(proc_fd, name, own->text, sizeof own->text) <= 0)
                return false;
        ret_map->count = id_ranges_parse(own->text, ret_map->ranges);
        return ret_map->count > 0;
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

        (void)snprintf(path, sizeof path, "/proc/%d", process);
        proc_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        return proc_fd >= 0 && read_map(proc_fd, "uid_map", &own->last.maps.users) &&
               read_map(proc_fd, "gid_map", &own->last.maps.groups) && fstatat(proc_fd, "ns/user", &st, 0) == 0 &&
               st.st_ino == wanted->st_ino && st.st_dev == wanted->st_dev;
}

static bool maps_root(const struct id_map *map)
{
        for (int i = 0; i < map->count; i++)
                if (map->ranges[i].outside == 0)
                        return true;
        return false;
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
                        return maps_root(&own->last.maps.users) || maps_root(&own->last.maps.groups) ? &node
                                                                                                     : &own->last.maps;
                thread = parent_of(thread);
        }
        return &nobody;
}

static const struct id_maps *find_maps(pid_t thread)
{
        cleanup_close int fd = -EBADF;
        const struct id_maps *maps;
        char path[MAX_PATH];
        struct stat st;

        (void)snprintf(path, sizeof path, "/proc/%d/ns/user", thread);
        if (fstatat(AT_FDCWD, path, &st, 0) < 0)
                return &nobody;
        if (own->last.fd > 0 && st.st_ino == own->last.inode && st.st_dev == own->last.device)
                return own->last.counts;
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) < 0)
                return &nobody;
        if (own->last.fd > 0)
                (void)close(own->last.fd); /* only looked at */
        own->last.fd = 0;
        maps = read_maps(fd, thread);
        if (maps == &nobody) /* perhaps not of another process */
                return maps;
        own->last.fd = fd_take(&fd);
        own->last.device = st.st_dev;
        own->last.inode = st.st_ino;
        own->last.counts = maps;
        return maps;
}

/* The last of the four ids in a line of /proc/PID/status: that for files. */
static bool read_id(const char *line, uint32_t *ret_id)
{
        const char *next = strstr(own->text, line);
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

/* False: they are too many, or there is no such line. */
static bool read_groups(void)
{
        static const char line[] = "\nGroups:";
        const char *next = strstr(own->text, line);

        if (next == NULL)
                return false;
        for (next += strlen(line); *next == ' ' || *next == '\t';)
                next++;
        for (own->found.group_count = 0; *next != '\n'; own->found.group_count++) {
                char *end;

                if (own->found.group_count == CALLER_GROUPS_MAX)
                        return false;
                own->found.groups[own->found.group_count] = (gid_t)strtoul(next, &end, 10);
                if (end == next)
                        return false; /* the text is cut here */
                for (next = end; *next == ' ';)
                        next++;
        }
        return true;
}

/* To those in the container. A group that is not mapped there is left out, as in the container. */
static void map_groups(const struct id_map *map)
{
        const int count = own->found.group_count;

        own->found.group_count = 0;
        for (int i = 0; i < count; i++)
                if (id_ranges_map(map->ranges, map->count, /* inside= */ false, &own->found.groups[i]))
                        own->found.groups[own->found.group_count++] = own->found.groups[i];
}

static bool map_ids(const struct id_maps *maps)
{
        map_groups(&maps->groups);
        return id_ranges_map(maps->users.ranges, maps->users.count, /* inside= */ false, &own->found.uid) &&
               id_ranges_map(maps->groups.ranges, maps->groups.count, /* inside= */ false, &own->found.gid);
}

/*
 * What the kernel has made for io_uring ("iou-wrk-N", "iou-sqp-N") shows the ids of when it was made, and acts with those of the
 * thread that asked it: of that process the first thread counts. A thread that calls itself so is of the same process.
 */
static bool read_status(pid_t *thread)
{
        static const char name[] = "Name:\tiou-";
        static const char line[] = "\nTgid:";
        const char *start;

        if (*thread <= 0 || !proc_status(*thread, own->text, sizeof own->text))
                return false;
        if (strncmp(own->text, name, strlen(name)) != 0 || (start = strstr(own->text, line)) == NULL)
                return true;
        *thread = (pid_t)strtol(start + strlen(line), NULL, 10);
        return proc_status(*thread, own->text, sizeof own->text);
}

const struct caller_ids *caller_ids_find(pid_t thread)
{
        if (!can_look())
                return &no_one;
        if (!read_status(&thread) || !read_id("\nUid:", &own->found.uid) || !read_id("\nGid:", &own->found.gid) ||
            !read_groups() || !map_ids(find_maps(thread))) {
                own->found.uid = own->found.gid = CALLER_NOBODY;
                own->found.group_count = 0;
        }
        return &own->found;
}

struct caller_ids *caller_ids_groups(pid_t thread, const struct id_map *map)
{
        if (!can_look())
                return &no_one;
        if (!read_status(&thread) || !read_groups())
                own->found.group_count = 0;
        map_groups(map);
        return &own->found;
}

bool caller_ids_know(pid_t thread, uid_t uid, gid_t gid)
{
        const struct id_maps *maps = thread > 0 && can_look() ? find_maps(thread) : &nobody;

        return id_map_has(&maps->users, uid) && id_map_has(&maps->groups, gid);
}
