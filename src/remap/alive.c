/* SPDX-License-Identifier: Apache-2.0 */
#include "alive.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "shared.h"

#define PF_EXITING 4UL /* of the kernel's sched.h */

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

bool alive_daemon_is_stuck(void)
{
        char path[32];
        unsigned long flags;
        char state;

        (void)snprintf(path, sizeof path, "/proc/%d/stat", shared->daemon_pid);
        return read_state(AT_FDCWD, path, &state, &flags) && state == 'Z';
}
