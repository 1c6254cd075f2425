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
#include "base/text.h"
#include "state/state_dir.h"

#define FILE_NAME ".call-counts.2" /* another meaning of its rows is another file */
#define ROWS_MAX 64
#define LOCK_TRIES 100 /* a millisecond each; a row is locked for some microseconds */

/* CALL_COUNTS_BOUNDS, in microseconds */
static const uint64_t bounds_us[CALL_COUNTS_BUCKETS] = { 10000, 100000, 1000000, 10000000, 60000000, 600000000 };

static char *directory; /* NULL: the reply is not counted */
static bool never;

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

/* All rows, as far as the file goes. Returns how many. */
static size_t read_rows(int fd, struct call_counts ret_rows[ROWS_MAX])
{
        ssize_t n = lseek(fd, 0, SEEK_SET) == 0 ? read(fd, ret_rows, ROWS_MAX * sizeof *ret_rows) : -1;

        return n < 0 ? 0 : (size_t)n / sizeof *ret_rows;
}

/* What is missing of a row is 0. */
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

static bool is_of(const struct call_counts *counts, const char *program)
{
        return strncmp(counts->program, program, sizeof counts->program) == 0;
}

/* The row of a program, locked; the first call of a program takes the first one that is free. False: there is none. */
static bool find_row(int fd, const char *program, size_t *ret_row, struct call_counts *ret_counts)
{
        static struct call_counts rows[ROWS_MAX];
        const size_t count = read_rows(fd, rows);
        size_t row = 0;

        while (row < count && rows[row].program[0] != '\0' && !is_of(&rows[row], program))
                row++;
        for (; row < ROWS_MAX; row++) { /* another program may just have taken it */
                if (!lock_row(fd, row) || !read_row(fd, row, ret_counts))
                        return false;
                if (ret_counts->program[0] == '\0')
                        (void)text_copy(ret_counts->program, sizeof ret_counts->program, program);
                *ret_row = row;
                if (is_of(ret_counts, program))
                        return true;
        }
        return false;
}

static void count(const char *program, uint64_t took_us, const json_t *reply)
{
        cleanup_close int fd = -1;
        struct call_counts counts;
        size_t row;

        if (directory == NULL || never || strlen(program) >= sizeof counts.program ||
            json_is_true(json_object_get(reply, "dryRun")))
                return;
        fd = open_file(directory, O_RDWR | O_CREAT);
        if (fd < 0 || !find_row(fd, program, &row, &counts))
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

void call_counts_never(void)
{
        never = true;
}

void call_counts_each(const char *state_dir, call_counts_function *function, void *argument)
{
        static struct call_counts rows[ROWS_MAX];
        cleanup_close int fd = open_file(state_dir, O_RDONLY);
        const size_t count = fd >= 0 ? read_rows(fd, rows) : 0;

        for (size_t row = 0; row < count; row++) {
                rows[row].program[sizeof rows[row].program - 1] = '\0';
                if (rows[row].program[0] != '\0' && rows[row].succeeded + rows[row].failed > 0)
                        function(&rows[row], argument);
        }
}
