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
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/syscalls.h"
#include "base/text.h"
#include "mount/dead_server.h"
#include "mount/detached.h"
#include "mount/identity.h"
#include "mount/mountinfo.h"
#include "process/worker.h"

#define RETRY_MS 20
#define LAZY_MS 5000 /* MNT_DETACH itself does not wait; ending a filesystem, as its last user, may */
#define KEEP_MS 1000
#define HELP_MS (600 * 1000) /* how long, at most, what waits for a dead server is helped to end */
#define USELESS_MS 30000
#define PATHS_SIZE ((size_t)1024 * 1024) /* of mounts below one directory; more are left to MNT_DETACH */

int on_node_place(int mount_fd, const char *dir, struct error *error)
{
        /* not O_DIRECTORY, with which the kernel sets off an automount there and waits for it */
        cleanup_close int dir_fd = open(dir, O_PATH | O_NOFOLLOW | O_CLOEXEC);

        return dir_fd < 0 ? fail(error, errno, "open", dir) : on_node_place_at(mount_fd, dir_fd, dir, error);
}

int on_node_place_at(int mount_fd, int dir_fd, const char *dir, struct error *error)
{
        struct mount_seen seen;

        if (mount_see(dir_fd, "", &seen) == 0 && !seen.directory)
                return fail(error, ENOTDIR, "open", dir);
        if (move_mount(mount_fd, "", dir_fd, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
                return fail(error, errno, OPERATION_MOVE_MOUNT, dir);
        return 0;
}

int on_node_place_file(int mount_fd, const char *path, struct error *error)
{
        cleanup_close int fd = openat(AT_FDCWD, path, O_RDONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0)
                return fail(error, errno, "open", path);
        if (!S_ISREG(st.st_mode) || st.st_size != 0)
                return fail_because(error, EEXIST, "open", path, "%s is there, and is no empty file", path);
        if (move_mount(mount_fd, "", fd, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
                return fail(error, errno, OPERATION_MOVE_MOUNT, path);
        return 0;
}

int on_node_place_beneath(int mount_fd, int top_fd, const char *dir, struct error *error)
{
        if (move_mount(mount_fd, "", top_fd, "",
                       MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH | MOVE_MOUNT_BENEATH) < 0)
                return fail(error, errno, OPERATION_MOVE_MOUNT, dir);
        return 0;
}

/* The link leads to the mount itself: what is mounted over it is not entered (docs/KERNEL.md#targets-in-a-container). */
int on_node_take_off(int fd, const char *dir, struct error *error)
{
        char link[64];

        (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        return umount2(link, MNT_DETACH) < 0 ? fail(error, errno, OPERATION_UMOUNT2, dir) : 0;
}

int on_node_has_below(int fd)
{
        cleanup_mount_table struct mountinfo table = {};
        uint64_t id = 0;
        int r = mount_see_short_id(fd, &id);

        if (r < 0 || (r = mountinfo_open_own(&table)) < 0)
                return r;
        while (mountinfo_next(&table))
                if (table.parent == id)
                        return 1;
        return table.failed ? -EIO : 0;
}

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

/*
 * Ids are used again, lowest first: the device, and the directory, must be the same, too. real: as mountinfo has it; "": that is not
 * known, as where its parent is not seen, and its name must be enough.
 */
static bool is_line_of(const struct mountinfo *line, const struct mount_identity *identity, const char *dir,
                       const char *real)
{
        return line->id == identity->id &&
               (major(identity->device) != 0 ? line->device == identity->device : major(line->device) == 0) &&
               (real[0] != '\0' ? strcmp(line->mount_point, real) == 0
                                : strcmp(strrchr(line->mount_point, '/'), strrchr(dir, '/')) == 0);
}

int on_node_has(const struct mount_identity *identity, const char *dir)
{
        cleanup_mount_table struct mountinfo table = {};
        char real[PATH_MAX];
        int r;

        if (identity->unique) { /* a kernel that has such identities has statmount, unless it is forbidden */
                r = mount_identity_is_in(identity, /* mnt_ns_id= */ 0);
                return r == -ENOSYS ? 0 : r;
        }
        if (resolve(dir, real) < 0)
                real[0] = '\0';
        r = mountinfo_open_own(&table);
        while (r == 0 && mountinfo_next(&table))
                if (is_line_of(&table, identity, dir, real))
                        return 1;
        return r == 0 && table.failed ? -EIO : r;
}

struct removal {
        const char *dir;
        int64_t deadline_ms; /* of trying the careful way */
        bool lazy;           /* the other way */
        bool done;           /* something was taken off */
        int clone_fd;        /* of the mount, for who waits in it */
};

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
                        return fail(error, errno, OPERATION_UMOUNT2, removal->dir);
                if (clock_now_ms() >= removal->deadline_ms)
                        return fail(error, EBUSY, OPERATION_UMOUNT2, removal->dir);
                (void)remove_below(removal->dir); /* what stays is told by the next try */
                if (!first)
                        clock_pause_ms(RETRY_MS);
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
        return table.failed;
}

static int clone_in_worker(void *argument, struct error *error)
{
        struct removal *removal = argument;
        cleanup_close int fd = open(removal->dir, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        if (fd < 0)
                return fail(error, errno, "open", removal->dir);
        removal->clone_fd = detached_mount_clone(fd, removal->dir, /* recursive= */ false, error);
        return removal->clone_fd < 0 ? removal->clone_fd : 0;
}

/* Until the server answers, or nothing was sent to it for so long that nobody wants anything. */
static void force_until_useless(struct dead_server *server)
{
        const int64_t end_ms = clock_now_ms() + HELP_MS;
        const uint64_t received = server->received;
        int64_t useless_ms = 0;

        while (server->received == received && useless_ms < USELESS_MS && clock_now_ms() < end_ms) {
                const uint64_t sent = server->sent;

                useless_ms = dead_server_look(server) ? useless_ms + DEAD_SERVER_TICK_MS : useless_ms;
                if (server->sent != sent)
                        useless_ms = 0;
                clock_pause_ms(DEAD_SERVER_TICK_MS);
        }
}

/* Its processes wait for a dead server and cannot be killed. In a process that nothing waits for. */
static void help_to_end(int clone_fd)
{
        struct dead_server server = {};

        if (dead_server_begin(clone_fd, "", &server) == 0)
                force_until_useless(&server);
        dead_server_end(&server);
        fd_close(&clone_fd);
}

int on_node_remove(const char *dir, unsigned timeout_seconds, bool insist, bool *ret_lazy, struct error *error)
{
        int64_t deadline_ms = clock_now_ms() + (int64_t)timeout_seconds * 1000;
        struct removal removal = { .dir = dir, .deadline_ms = deadline_ms, .clone_fd = -EBADF };
        int r = worker_run(remove_in_worker, &removal, deadline_ms + RETRY_MS * 5, error);

        *ret_lazy = false;
        if (insist && (r == -EBUSY || r == -ETIMEDOUT || r == -EIO || r == -ESTALE || r == -ENOTCONN)) {
                removal.lazy = true;
                *ret_lazy = true;
                (void)worker_run(clone_in_worker, &removal, clock_now_ms() + KEEP_MS, error); /* else without */
                r = worker_run(remove_in_worker, &removal, clock_now_ms() + LAZY_MS, error);
                if (r == -ETIMEDOUT && !is_mounted(dir))
                        r = 0;
                removal.done = true;
                if (removal.clone_fd >= 0) {
                        worker_leave_behind(help_to_end, removal.clone_fd);
                        fd_close(&removal.clone_fd);
                }
        }
        return r < 0 ? r : removal.done ? 1 : 0;
}

struct unmount {
        const char *dir;
        int flags;
};

static int unmount_in_worker(void *argument, struct error *error)
{
        const struct unmount *job = argument;

        return umount2(job->dir, UMOUNT_NOFOLLOW | job->flags) < 0 ? fail(error, errno, OPERATION_UMOUNT2, job->dir)
                                                                   : 0;
}

int on_node_unmount(const char *dir, int flags, unsigned timeout_seconds, struct error *error)
{
        struct unmount job = { .dir = dir, .flags = flags };
        int r = worker_run(unmount_in_worker, &job, clock_now_ms() + (int64_t)timeout_seconds * 1000, error);

        return r == -ETIMEDOUT && !is_mounted(dir) ? 0 : r;
}
