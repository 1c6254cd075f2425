/* SPDX-License-Identifier: Apache-2.0 */
#include "removed.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "answer.h"
#include "base/fd.h"
#include "nodes.h"

#define LOOK_MS 20000
#define LOOK_AT 16384 /* nodes, each time */

static bool has_no_name(const struct node_fd *fd)
{
        struct statx st;

        return S_ISREG(fd->node->mode) &&
               statx(fd->fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_NLINK, &st) == 0 && st.stx_nlink == 0;
}

/* Where it was when its last name was removed. */
static bool read_former_path(int fd, char ret_path[PATH_MAX])
{
        static const char mark[] = " (deleted)";
        const ssize_t marked = (ssize_t)strlen(mark);
        char link[32];
        ssize_t n;

        (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        n = readlink(link, ret_path, PATH_MAX - 1);
        if (n <= marked || ret_path[0] != '/' || memcmp(ret_path + n - marked, mark, (size_t)marked) != 0)
                return false;
        ret_path[n - marked] = '\0';
        return true;
}

/*
 * The first name on the way that is nobody's any more, or that of a file which the kernel does not know: if it remembers
 * something by that name, then what was there. It forgets what is below, too. What it knows by that name it may have looked up
 * since, and then it has forgotten the other one already, unless somebody uses it; or it knows that by the name that it had
 * before others renamed it, and the removed one stays until the name is looked up: to forget the name of a file that is in use
 * would unmount what is mounted on it. Nor is a file found that others renamed first: the kernel has it by the former name.
 */
static void tell_gone(char *path)
{
        cleanup_close int own_fd = -EBADF;
        int directory_fd = FD_ROOT;
        uint64_t directory = NODES_ROOT;
        char *rest = path + 1;
        const char *name;

        while ((name = strsep(&rest, "/")) != NULL) {
                uint64_t number = 0;
                struct stat st;
                int fd;

                if (fstatat(directory_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
                        number = nodes_known(&st);
                else if (errno != ENOENT)
                        return;
                if (number == 0) {
                        answer_invalidate_name(directory, name);
                        return;
                }
                if (rest == NULL || !S_ISDIR(st.st_mode))
                        return;
                fd = openat(directory_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                fd_close(&own_fd);
                own_fd = directory_fd = fd;
                directory = number;
                if (fd < 0)
                        return;
        }
}

/* Returns the node to look at next. */
static uint64_t look_from(uint64_t number)
{
        static char path[PATH_MAX];

        for (int i = 0; i < LOOK_AT; i++) {
                struct node_fd fd = nodes_hold(number);
                const bool gone = fd.node != NULL && has_no_name(&fd) && read_former_path(fd.fd, path);

                nodes_close(&fd);
                if (gone)
                        tell_gone(path);
                if (++number >= shared->nodes_high)
                        return NODES_ROOT + 1;
        }
        return number;
}

static void *look(void *ignored)
{
        uint64_t next = NODES_ROOT + 1;

        (void)ignored;
        for (;;) {
                (void)poll(NULL, 0, LOOK_MS);
                next = look_from(next);
        }
        return NULL;
}

void removed_begin(void)
{
        pthread_t thread;

        if (!shared->network && !shared->alone)
                (void)pthread_create(&thread, NULL, look, NULL); /* the rest goes on without it */
}
