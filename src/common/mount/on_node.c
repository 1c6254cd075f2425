/* SPDX-License-Identifier: Apache-2.0 */
#include "mount/on_node.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/syscalls.h"
#include "base/text.h"
#include "mount/mountinfo.h"
#include "process/worker.h"

#define RETRY_NS (20L * 1000 * 1000)
#define LAZY_MS 5000 /* MNT_DETACH itself does not wait; ending a filesystem, as its last user, may */
#define PATHS_SIZE ((size_t)1024 * 1024) /* of mounts below one directory; more are left to MNT_DETACH */

int on_node_place(int mount_fd, const char *dir, struct error *error)
{
        cleanup_close int dir_fd = open(dir, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        if (dir_fd < 0)
                return fail(error, errno, "open", dir);
        if (move_mount(mount_fd, "", dir_fd, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
                return fail(error, errno, "move_mount", dir);
        return 0;
}

struct removal {
        const char *dir;
        int64_t deadline_ms; /* of trying the careful way */
        bool lazy;           /* the other way */
        bool done;           /* something was taken off */
};

/* The directory as mountinfo has it: the links of the path before it resolved, itself not looked at. */
static int resolve(const char *dir, char *ret_path)
{
        char parent[PATH_MAX];
        char link[64];
        cleanup_close int fd = -EBADF;
        const char *name = strrchr(dir, '/') + 1;
        ssize_t n;

        (void)snprintf(parent, sizeof parent, "%.*s", (int)(name - dir), dir);
        fd = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        n = readlinkat(AT_FDCWD, link, ret_path, PATH_MAX - 1);
        if (n < 0)
                return -errno;
        ret_path[n] = '\0';
        if ((size_t)n + 1 + strlen(name) >= PATH_MAX)
                return -ENAMETOOLONG;
        (void)snprintf(ret_path + n, PATH_MAX - (size_t)n, "%s%s", n > 1 ? "/" : "", name);
        return 0;
}

/* By the name in its directory, which is reached through no link: names below the volume are a pod's to change. */
static void remove_one(const char *mount_point)
{
        char parent[PATH_MAX];
        const char *name = strrchr(mount_point, '/') + 1;
        cleanup_close int fd = -EBADF;

        (void)snprintf(parent, sizeof parent, "%.*s", (int)(name - mount_point), mount_point);
        fd = sys_openat2(AT_FDCWD, parent, O_PATH | O_DIRECTORY, 0, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
        if (fd >= 0 && fchdir(fd) == 0)
                (void)umount2(name, UMOUNT_NOFOLLOW); /* if it is busy, so is what it is mounted on */
}

/* Whatever is mounted below, the last one first. */
static int remove_below(const char *dir)
{
        cleanup_mount_table struct mountinfo table = {};
        char real[PATH_MAX];
        size_t used = 0;
        char *paths; /* one after the other, each terminated */
        int r;

        if ((r = resolve(dir, real)) < 0 || (r = mountinfo_open_own(&table)) < 0)
                return r;
        paths = malloc(PATHS_SIZE);
        if (paths == NULL)
                return -ENOMEM;
        while (mountinfo_next(&table)) {
                size_t length = strlen(table.mount_point) + 1;

                if (!text_lies_in(table.mount_point, real) || strcmp(table.mount_point, real) == 0)
                        continue;
                if (used + length > PATHS_SIZE)
                        break;
                (void)memcpy(paths + used, table.mount_point, length);
                used += length;
        }
        while (used > 0) {
                for (used--; used > 0 && paths[used - 1] != '\0'; used--)
                        ;
                remove_one(paths + used);
        }
        free(paths);
        return chdir("/") < 0 ? -errno : 0; /* else we were what keeps it busy */
}

static int remove_in_worker(void *argument, struct error *error)
{
        static const struct timespec pause = { .tv_nsec = RETRY_NS };
        struct removal *removal = argument;
        int flags = UMOUNT_NOFOLLOW | (removal->lazy ? MNT_DETACH : 0);
        bool first = true;

        for (;;) {
                if (umount2(removal->dir, flags) == 0) {
                        removal->done = true; /* and perhaps there is one beneath */
                        continue;
                }
                if (errno == EINVAL || errno == ENOENT || errno == ENOTDIR)
                        return 0;
                if (errno != EBUSY || removal->lazy)
                        return fail(error, errno, "umount2", removal->dir);
                if (clock_now_ms() >= removal->deadline_ms)
                        return fail(error, EBUSY, "umount2", removal->dir);
                (void)remove_below(removal->dir); /* what stays is told by the next try */
                if (!first)
                        (void)nanosleep(&pause, NULL);
                first = false;
        }
}

/* What the kernel's table says, where umount2 does not come back. */
static bool is_mounted(const char *dir)
{
        cleanup_mount_table struct mountinfo table = {};
        char real[PATH_MAX];

        if (resolve(dir, real) < 0 || mountinfo_open_own(&table) < 0)
                return true;
        while (mountinfo_next(&table))
                if (strcmp(table.mount_point, real) == 0)
                        return true;
        return false;
}

int on_node_remove(const char *dir, unsigned timeout_seconds, bool insist, bool *ret_lazy, struct error *error)
{
        int64_t deadline_ms = clock_now_ms() + (int64_t)timeout_seconds * 1000;
        struct removal removal = { .dir = dir, .deadline_ms = deadline_ms };
        int r = worker_run(remove_in_worker, &removal, deadline_ms + RETRY_NS / 1000000 * 5, error);

        *ret_lazy = false;
        if (insist && (r == -EBUSY || r == -ETIMEDOUT || r == -EIO || r == -ESTALE || r == -ENOTCONN)) {
                removal.lazy = true;
                *ret_lazy = true;
                r = worker_run(remove_in_worker, &removal, clock_now_ms() + LAZY_MS, error);
                if (r == -ETIMEDOUT && !is_mounted(dir))
                        r = 0;
                removal.done = true;
        }
        return r < 0 ? r : removal.done ? 1 : 0;
}
