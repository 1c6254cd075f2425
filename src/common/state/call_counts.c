/* SPDX-License-Identifier: Apache-2.0 */
#include "state/call_counts.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/reply.h"
#include "state/state_dir.h"

#define FILE_NAME ".call-counts.1" /* another meaning of its rows is another file */
#define LOCK_TRIES 100             /* a millisecond each; a row is locked for some microseconds */

/* By the number of its row: a new program is added at the end. */
static const char *const programs[] = {
        "mount-bind",      "mount-block",      "mount-container-to-container",
        "mount-tmpfs",     "mount-nfs",        "mount-overlay",
        "mount-batch",     "mount-hook",       "mount-remove",
        "mount-list",      "getvolumename",    "attach",
        "waitforattach",   "isattached",       "detach",
        "mountdevice",     "unmountdevice",    "mount",
        "unmount",         "expandvolume",     "expandfs",
        "volume-create",   "volume-delete",    "volume-list",
        "volume-capacity", "volume-reconcile", "mount-volume",
        "mount-image",     "volume-expand",    "volume-snapshot",
        "remap-mount",
};
#define PROGRAMS (sizeof programs / sizeof programs[0])

/* CALL_COUNTS_BOUNDS, in microseconds */
static const uint64_t bounds_us[CALL_COUNTS_BUCKETS] = { 10000, 100000, 1000000, 10000000, 60000000, 600000000 };

static char *directory; /* NULL: the reply is not counted */

static bool is_trusted(int dir_fd)
{
        struct stat st;

        return dir_fd >= 0 && fstat(dir_fd, &st) == 0 && st.st_uid == geteuid() &&
               (st.st_mode & (S_IWGRP | S_IWOTH)) == 0; /* others may write to it */
}

/* Returns a descriptor, or -1. */
static int open_file(const char *state_dir, int flags)
{
        const int opened = state_opened(state_dir); /* and so trusted */
        cleanup_close int dir_fd = opened >= 0 ? -1 : open(state_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

        if (opened < 0 && !is_trusted(dir_fd))
                return -1;
        return openat(opened >= 0 ? opened : dir_fd, FILE_NAME, flags | O_NOFOLLOW | O_CLOEXEC, 0600);
}

/* Read as far as the file goes: what is missing of it is 0. */
static bool read_row(int fd, size_t row, struct call_counts *ret_counts)
{
        *ret_counts = (struct call_counts){};
        return lseek(fd, (off_t)(row * sizeof *ret_counts), SEEK_SET) >= 0 &&
               read(fd, ret_counts, sizeof *ret_counts) >= 0;
}

/* The lock ends with the descriptor. A process that is stopped while it has the lock must not stop others. */
static bool lock_row(int fd, size_t row)
{
        struct flock range = { .l_type = F_WRLCK,
                               .l_whence = SEEK_SET,
                               .l_start = (off_t)(row * sizeof(struct call_counts)),
                               .l_len = sizeof(struct call_counts) };

        for (int tries = 0; tries < LOCK_TRIES; tries++) {
                if (fcntl(fd, F_OFD_SETLK, &range) == 0)
                        return true;
                clock_pause_ms(1);
        }
        return false;
}

static void add(struct call_counts *counts, uint64_t took_us, const json_t *reply)
{
        const char *status = json_string_value(json_object_get(reply, "status"));
        const json_t *problems = json_object_get(reply, "problems");

        if (status != NULL && strcmp(status, "Success") == 0) {
                counts->succeeded++;
                counts->last_success = clock_seconds();
        } else
                counts->failed++;
        counts->sum_us += took_us;
        for (size_t i = 0; i < CALL_COUNTS_BUCKETS; i++)
                if (took_us <= bounds_us[i]) {
                        counts->buckets[i]++;
                        break;
                }
        if (problems != NULL)
                counts->problems = json_array_size(problems);
}

static void count(const char *program, uint64_t took_us, const json_t *reply)
{
        cleanup_close int fd = -1;
        struct call_counts counts;
        size_t row = 0;

        while (row < PROGRAMS && strcmp(programs[row], program) != 0)
                row++;
        if (row == PROGRAMS || directory == NULL || json_is_true(json_object_get(reply, "dryRun")))
                return;
        fd = open_file(directory, O_RDWR | O_CREAT);
        if (fd < 0 || !lock_row(fd, row) || !read_row(fd, row, &counts))
                return;
        add(&counts, took_us, reply);
        if (lseek(fd, (off_t)(row * sizeof counts), SEEK_SET) >= 0)
                (void)!write(fd, &counts, sizeof counts); /* a full disk loses the count, not the call */
}

void call_counts_begin(const char *state_dir)
{
        char *old = directory;

        directory = strdup(state_dir);
        free(old); /* last: a worker may be killed at any line, and what is pointed to must be there */
        reply_observe(count);
}

void call_counts_each(const char *state_dir, call_counts_function *function, void *argument)
{
        cleanup_close int fd = open_file(state_dir, O_RDONLY);
        struct call_counts counts;

        for (size_t row = 0; fd >= 0 && row < PROGRAMS; row++)
                if (read_row(fd, row, &counts) && counts.succeeded + counts.failed > 0)
                        function(programs[row], &counts, argument);
}
