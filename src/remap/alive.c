/* SPDX-License-Identifier: Apache-2.0 */
#include "alive.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "shared.h"

#define PF_EXITING 4UL /* of the kernel's sched.h */
#define STUCK_MS 1500  /* a thread that is being ended may wait for a disk on its way */

bool alive_mount_is_over(void)
{
        struct pollfd fuse = { .fd = FD_FUSE, .events = POLLIN };

        return poll(&fuse, 1, 0) > 0 && (fuse.revents & POLLERR) != 0;
}

/* A process's state and flags. False: it has ended, and the kernel unmounts what is in its namespace. */
static bool read_state(int dir_fd, const char *path, char *ret_state, unsigned long *ret_flags)
{
        char text[512];
        char *next;

        if (file_read(dir_fd, path, text, sizeof text) <= 0)
                return false;
        next = strrchr(text, ')'); /* the end of its name */
        if (next == NULL || strlen(next) < 4)
                return false;
        *ret_state = next[2];
        next += 3;
        for (int field = 4; field < 9; field++) /* proc(5): flags is the ninth */
                (void)strtol(next, &next, 10);
        *ret_flags = strtoul(next, NULL, 10);
        return true;
}

bool alive_container_is_ending(void)
{
        unsigned long flags;
        char state;

        return read_state(FD_CONTAINER, "stat", &state, &flags) && state != 'Z' && state != 'X' &&
               (flags & PF_EXITING) != 0;
}

/* Whether a thread waits in the kernel in a way that no signal ends at once, or on its way out; or has ended. */
static bool waits_or_has_ended(int dir_fd, const char *name, bool *ret_waits)
{
        char path[32];
        unsigned long flags;
        char state;

        (void)snprintf(path, sizeof path, "%.16s/stat", name);
        *ret_waits = false;
        if (!read_state(dir_fd, path, &state, &flags))
                return true;
        *ret_waits = state == 'D' || state == 't' || (state == 'S' && (flags & PF_EXITING) != 0);
        return *ret_waits || state == 'Z' || state == 'X';
}

/* Every thread but the first, which waits for the others where it has ended. False, too, where they cannot be listed. */
static bool others_wait(int tasks_fd, const char *first)
{
        char entries[4096] __attribute__((aligned(8)));
        bool one_waits = false;
        ssize_t n;

        while ((n = getdents64(tasks_fd, entries, sizeof entries)) > 0)
                for (ssize_t at = 0; at < n;) {
                        const struct dirent64 *entry = (const void *)(entries + at);
                        bool waits;

                        at += entry->d_reclen;
                        if (entry->d_name[0] == '.' || strcmp(entry->d_name, first) == 0)
                                continue;
                        if (!waits_or_has_ended(tasks_fd, entry->d_name, &waits))
                                return false;
                        one_waits |= waits;
                }
        return n == 0 && one_waits;
}

bool alive_daemon_is_stuck(int64_t *since_ms)
{
        char path[32];
        char first[16];
        unsigned long flags;
        char state;
        bool stuck = false;
        int tasks_fd;

        (void)snprintf(first, sizeof first, "%d", shared->daemon_pid);
        (void)snprintf(path, sizeof path, "/proc/%s/stat", first);
        if (read_state(AT_FDCWD, path, &state, &flags) && state == 'Z') {
                (void)snprintf(path, sizeof path, "/proc/%s/task", first);
                tasks_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                stuck = tasks_fd >= 0 && others_wait(tasks_fd, first);
                fd_close(&tasks_fd);
        }
        if (!stuck)
                *since_ms = 0;
        else if (*since_ms == 0)
                *since_ms = clock_now_ms();
        return stuck && clock_now_ms() - *since_ms >= STUCK_MS;
}
