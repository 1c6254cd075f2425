/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop_list.c - all attached loop devices.
 *
 * LOOP_GET_STATUS64 asks the file's filesystem (loop_get_status() in drivers/block/loop.c): it fails where a FUSE program
 * is gone, and waits where an NFS server is. So a worker asks: a server that is dead costs its own volumes, not all.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/text.h"
#include "block/loop.h"
#include "block/loop_guard.h"
#include "process/log.h"
#include "process/worker.h"

#define AT_ONCE 16       /* devices that one worker asks */
#define PATIENCE_MS 2000 /* with one worker */

struct list {
        struct loop_device devices[AT_ONCE]; /* of one that was not asked: its path */
        int results[AT_ONCE];                /* negative errno; positive: it could not be opened */
        unsigned count;
        char silent[PATH_MAX];   /* the directory of the last file whose filesystem did not answer; or "" */
        int sought_fd;           /* of the only file that matters, or -EBADF */
        const char *sought_name; /* of its last component, where there is no descriptor; or NULL */
        struct error error;      /* other than that one did not answer */
};

static bool is_attached(const char *device)
{
        char path[64];

        /* sysfs first: opening a device could create it */
        (void)snprintf(path, sizeof path, "/sys/block/%.16s/loop/backing_file", device + strlen("/dev/"));
        return faccessat(AT_FDCWD, path, F_OK, 0) == 0;
}

/* The path of a device's file, or "". Returns where its last component begins. */
static char *read_file_path(const char *device, char *ret_path)
{
        char *slash;

        if (!loop_backing_path(device + strlen("/dev/"), ret_path))
                ret_path[0] = '\0';
        slash = strrchr(ret_path, '/');
        return slash == NULL ? ret_path : slash + 1;
}

/* Whether its file lies beside one whose filesystem did not answer. */
static bool is_beside_silent(const struct list *list, const char *device)
{
        char path[PATH_MAX];

        if (list->silent[0] == '\0')
                return false;
        *read_file_path(device, path) = '\0';
        return strcmp(path, list->silent) == 0;
}

/* Each is open only while it is asked: others detach it meanwhile. */
static int ask_one(const struct list *list, const char *path, struct loop_device *ret_device, struct error *error)
{
        cleanup_close int fd = -EBADF;

        if (is_beside_silent(list, path))
                return -ETIMEDOUT;
        fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0)
                return errno == ENXIO ? -ENXIO : errno;
        return loop_device_look_at(fd, path, ret_device, error);
}

static void ask_device(struct ask *ask, size_t index)
{
        struct list *list = ask->argument;
        struct loop_device *device = &list->devices[index];
        char path[sizeof device->path];
        struct error ignored;

        (void)text_copy(path, sizeof path, device->path);
        list->results[index] = ask_one(list, path, device, &ignored);
}

static void give_up(struct ask *ask, size_t index, const struct error *error)
{
        struct list *list = ask->argument;

        if (error->errnum != ETIMEDOUT)
                list->error = *error; /* there is no worker */
        list->results[index] = -ETIMEDOUT;
        *read_file_path(list->devices[index].path, list->silent) = '\0';
}

static int ask_devices(struct list *list, struct error *error)
{
        struct ask ask = { .count = list->count,
                           .argument = list,
                           .one = ask_device,
                           .give_up = give_up,
                           .share_ms = PATIENCE_MS,
                           .deadline_ms = INT64_MAX,
                           .without_fds = true };

        if (ask_all(&ask) < list->count) /* one of this process's descriptors does not let itself be closed */
                return fail(error, ETIMEDOUT, "look at", "loop devices");
        if (list->error.errnum == 0)
                return 0;
        *error = list->error;
        return error_negative(error->errnum);
}

/* The name of the file that is sought. Gives PATH_MAX bytes, which it may lie in; NULL: none is, or it is not known. */
static const char *sought_name(const struct list *list, char *ret_path)
{
        char link[64];
        const char *slash;
        ssize_t n;

        if (list->sought_name != NULL || list->sought_fd < 0)
                return list->sought_name;
        (void)snprintf(link, sizeof link, "/proc/self/fd/%d", list->sought_fd);
        n = readlink(link, ret_path, PATH_MAX - 1);
        ret_path[n < 0 ? 0 : n] = '\0';
        slash = strrchr(ret_path, '/');
        return slash == NULL ? NULL : slash + 1;
}

/*
 * Of a device that did not answer it is unknown whether it is sought. Its file is another one if a file is sought, whose
 * filesystem has just answered its caller; but it may have begun to hang since.
 */
static int pass_over(const struct list *list, const char *device, int reason, struct error *error)
{
        char path[PATH_MAX];
        char sought_path[PATH_MAX];
        const char *name = read_file_path(device, path);
        const char *sought = sought_name(list, sought_path);

        log_say("%s, of %s, is passed over: its file's filesystem does not answer (%s)", device, path,
                strerror(-reason));
        /* nothing will answer any more; but a server's file may be found again, and be the one that is sought */
        if (reason == -ENOTCONN || (list->sought_name != NULL && loop_device_is_end(reason)))
                return 0;
        return sought == NULL || strcmp(sought, name) != 0
                       ? 0
                       : fail_because(error, -reason, "look at", device,
                                      "the filesystem of %s, which %s is attached to, does not answer", path, device);
}

/*
 * A node that is a container sees in sysfs all loop devices of the machine, and has those in its /dev that were there when it
 * started. What has no name there is no device of this node's own; but it may be over the file that is sought.
 */
static int pass_over_unnamed(const struct list *list, const char *device, struct error *error)
{
        char path[PATH_MAX];
        char sought_path[PATH_MAX];
        const char *name = read_file_path(device, path);
        const char *sought = list->sought_fd < 0 ? NULL : sought_name(list, sought_path);

        return sought == NULL || strcmp(sought, name) != 0 ? 0 : fail(error, ENOENT, "open", device);
}

static int tell(const struct list *list, loop_device_function *function, void *argument, struct error *error)
{
        int r = 0;

        for (unsigned i = 0; r == 0 && i < list->count; i++) {
                const char *path = list->devices[i].path;

                if (list->results[i] == 0)
                        r = function(&list->devices[i], argument, error);
                else if (list->results[i] == -ENXIO || !is_attached(path))
                        continue; /* detached meanwhile */
                else if (list->results[i] == ENOENT)
                        r = pass_over_unnamed(list, path, error);
                else if (list->results[i] > 0)
                        r = fail(error, list->results[i], "open", path);
                else
                        r = pass_over(list, path, list->results[i], error);
        }
        return r;
}

static int ask_and_tell(struct list *list, loop_device_function *function, void *argument, struct error *error)
{
        int r = ask_devices(list, error);

        if (r == 0)
                r = tell(list, function, argument, error);
        list->count = 0;
        return r;
}

/* A guard is over a device, or over a file of its container's, which no one else looks for. */
static bool is_listed(const char *name, char *ret_path)
{
        uint64_t number;

        if (!text_starts(name, "loop") || !text_number(name + strlen("loop"), 1U << 20, &number) ||
            loop_guard_reserves((unsigned)number))
                return false;
        (void)snprintf(ret_path, sizeof((struct loop_device *)NULL)->path, "/dev/loop%u", (unsigned)number);
        return is_attached(ret_path);
}

static int each(int sought_fd, const char *sought_name, loop_device_function *function, void *argument,
                struct error *error)
{
        struct list list = { .sought_fd = sought_fd, .sought_name = sought_name };
        DIR *names = opendir("/sys/block");
        const struct dirent *entry;
        int r = 0;

        if (names == NULL)
                return fail(error, errno, "open", "/sys/block");
        while (r == 0 && (errno = 0, entry = readdir(names)) != NULL) {
                if (is_listed(entry->d_name, list.devices[list.count].path) && ++list.count == AT_ONCE)
                        r = ask_and_tell(&list, function, argument, error);
        }
        if (r == 0 && errno != 0)
                r = fail(error, errno, "look for loop devices", "/sys/block");
        (void)closedir(names); /* nothing was written */
        return r != 0 ? r : ask_and_tell(&list, function, argument, error);
}

int loop_device_each(loop_device_function *function, void *argument, struct error *error)
{
        return each(-EBADF, NULL, function, argument, error);
}

int loop_device_each_named(const char *name, loop_device_function *function, void *argument, struct error *error)
{
        return each(-EBADF, name, function, argument, error);
}

int loop_device_each_over(int fd, loop_device_function *function, void *argument, struct error *error)
{
        int r = file_is_open_once(fd);

        if (r < 0)
                return fail(error, -r, "fcntl", "image");
        return r > 0 ? 0 : each(fd, NULL, function, argument, error);
}

struct look {
        const char *path;
        struct loop_device *ret_device;
};

static int look_at(void *argument, struct error *error)
{
        const struct look *look = argument;

        return loop_device_look(look->path, look->ret_device, error);
}

int loop_device_look_soon(const char *path, struct loop_device *ret_device, struct error *error)
{
        struct look look = { path, ret_device };

        return worker_run_without_fds(look_at, &look, clock_now_ms() + PATIENCE_MS, error);
}
