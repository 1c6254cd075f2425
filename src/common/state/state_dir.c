/* SPDX-License-Identifier: Apache-2.0 */
#include "state/state_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/interrupt.h"
#include "base/text.h"
#include "process/worker.h"

#define LOCK_FILE ".lock"

/*
 * The bytes of the file of locks. Programs of different versions share it: none may change.
 *
 *      from 0                  state_lock_offset() of a key, which is less than 1 << 62: state_lock(), and what a remap-daemon holds
 *      from 1 << 62            what uses a filesystem of a server, by its device: locks for reading, of remap-daemons (USERS_BASE
 *                              of src/remap/ending.c); a device is less than 1 << 61
 *      from FOR_EVER           state_try_lock_for_ever(), half as far apart; up to the end of what a file can have
 */
#define FOR_EVER (((off_t)1 << 62) + ((off_t)1 << 61))

/* Open a directory by a normal absolute path; make what is missing of it. */
static int open_made(const char *path, struct error *error)
{
        cleanup_close int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        const char *rest = path + 1;

        while (fd >= 0 && *rest != '\0') {
                char name[NAME_MAX + 1];
                size_t length = strcspn(rest, "/");
                int next;

                (void)memcpy(name, rest, length);
                name[length] = '\0';
                rest += length + (rest[length] == '/' ? 1 : 0);
                if (mkdirat(fd, name, *rest == '\0' ? 0700 : 0755) < 0 && errno != EEXIST)
                        return fail(error, errno, "mkdir", path);
                next = openat(fd, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
                fd_close(&fd);
                fd = next;
        }
        return fd < 0 ? fail(error, errno, "open", path) : fd_take(&fd);
}

/* Records can be trusted where only root may write to the directory. */
static int check_trust(int fd, const char *path, struct error *error)
{
        struct stat st;

        if (fstat(fd, &st) < 0)
                return fail(error, errno, "fstat", path);
        if (st.st_uid != geteuid() || (st.st_mode & (S_IWGRP | S_IWOTH)) != 0)
                return fail_because(error, EPERM, OPERATION_OPEN_STATE, path,
                                    "the directory belongs to another user, or others may write to it");
        if ((st.st_mode & (S_IRWXG | S_IRWXO)) != 0 && fchmod(fd, 0700) < 0 && errno != EROFS)
                return fail(error, errno, "fchmod", path);
        return 0;
}

/* The state directory, opened and checked. A program has one, and opens it for each sort of record: kept until it ends. */
static char *kept_path; /* on the heap: a path has a page of its own else */
static int kept_fd = -EBADF;

int state_opened(const char *state_dir)
{
        return kept_path != NULL && strcmp(kept_path, state_dir) == 0 ? kept_fd : -EBADF;
}

static int keep(const char *state_dir, int *fd, struct error *error)
{
        char *path = strdup(state_dir);
        char *old = kept_path;

        if (path == NULL)
                return fail(error, ENOMEM, OPERATION_OPEN_STATE, state_dir);
        kept_path = NULL; /* a worker may be killed between any two of these lines */
        fd_close(&kept_fd);
        kept_fd = fd_take(fd);
        kept_path = path;
        free(old);
        return kept_fd;
}

/* Returns: a descriptor, borrowed. */
static int open_top(const char *state_dir, bool create, struct error *error)
{
        cleanup_close int fd = -EBADF;
        int r;

        if (state_opened(state_dir) >= 0)
                return kept_fd;
        fd = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0 && errno == ENOENT && create) {
                cleanup_close int made_fd = open_made(state_dir, error);

                if (made_fd < 0)
                        return made_fd;
                fd = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        }
        if (fd < 0)
                return fail(error, errno, OPERATION_OPEN_STATE, state_dir);
        r = check_trust(fd, state_dir, error);
        return r < 0 ? r : keep(state_dir, &fd, error);
}

int state_open(const char *state_dir, const char *sort, bool create, struct state *ret_state, struct error *error)
{
        cleanup_state struct state state = STATE_NONE;
        int fd = open_top(state_dir, create, error);
        int r;

        if (fd < 0)
                return fd;

        state.dir_fd = openat(fd, sort, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (state.dir_fd < 0 && errno == ENOENT && create) {
                if (mkdirat(fd, sort, 0700) < 0 && errno != EEXIST)
                        return fail(error, errno, "mkdir", state_dir);
                state.dir_fd = openat(fd, sort, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        }
        if (state.dir_fd < 0)
                return fail(error, errno, OPERATION_OPEN_STATE, state_dir);
        if ((r = check_trust(state.dir_fd, state_dir, error)) < 0)
                return r;
        *ret_state = state;
        state = (struct state)STATE_NONE;
        return 0;
}

static int open_locks(struct state *state)
{
        if (state->lock_fd < 0)
                state->lock_fd = openat(state->dir_fd, LOCK_FILE, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        return state->lock_fd;
}

off_t state_lock_offset(uint64_t key)
{
        return (off_t)(key >> 2);
}

static struct flock range_of(uint64_t key)
{
        return (struct flock){ .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = state_lock_offset(key), .l_len = 1 };
}

bool state_try_lock(struct state *state, uint64_t key)
{
        struct flock range = range_of(key);

        return open_locks(state) >= 0 && fcntl(state->lock_fd, F_OFD_SETLK, &range) == 0;
}

static int wait_for_lock(struct state *state, struct flock range, struct error *error)
{
        int r;

        /* what is undone after an interrupt still gets a lock that is free */
        while (fcntl(state->lock_fd, interrupt_is_noted() ? F_OFD_SETLK : F_OFD_SETLKW, &range) < 0) {
                if (interrupt_is_noted() && (r = interrupt_check("lock", "state", error)) < 0)
                        return r;
                if (errno != EINTR)
                        return fail(error, errno, "lock", "state");
        }
        return 0;
}

int state_lock(struct state *state, uint64_t key, struct error *error)
{
        bool waited;
        int r;

        if (open_locks(state) < 0)
                return fail(error, errno, "lock", "state");
        waited = worker_waits_for_others(false); /* whoever has the lock may have much to do itself */
        r = wait_for_lock(state, range_of(key), error);
        (void)worker_waits_for_others(waited);
        return r;
}

void state_unlock(struct state *state, uint64_t key)
{
        struct flock range = range_of(key);

        range.l_type = F_UNLCK;
        (void)fcntl(state->lock_fd, F_OFD_SETLK, &range); /* cannot fail for what is locked */
}

int state_open_locks(const struct state *state)
{
        struct state apart = { .dir_fd = state->dir_fd, .lock_fd = -EBADF };

        return open_locks(&apart);
}

/* The type of lock that another process has there; -1: unknown. */
static int type_held(struct state *state, struct flock range)
{
        return open_locks(state) >= 0 && fcntl(state->lock_fd, F_OFD_GETLK, &range) == 0 ? range.l_type : -1;
}

/* Behind all others: whether there is any takes one look. */
static struct flock range_for_ever(uint64_t key)
{
        struct flock range = range_of(key);

        range.l_start = FOR_EVER + range.l_start / 2;
        return range;
}

bool state_try_lock_for_ever(struct state *state, uint64_t key)
{
        struct flock range = range_for_ever(key);

        return open_locks(state) >= 0 && fcntl(state->lock_fd, F_OFD_SETLK, &range) == 0;
}

bool state_is_held_for_ever(struct state *state, uint64_t key)
{
        return type_held(state, range_for_ever(key)) == F_WRLCK;
}

bool state_is_any_held_for_ever(struct state *state)
{
        return type_held(state, (struct flock){ .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = FOR_EVER }) ==
               F_WRLCK;
}

bool state_is_free(struct state *state, uint64_t key)
{
        return type_held(state, range_of(key)) == F_UNLCK;
}

int state_lock_file(const struct state *state, struct stat *ret_st)
{
        return fstatat(state->dir_fd, LOCK_FILE, ret_st, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

DIR *state_list(const struct state *state)
{
        return file_list(state->dir_fd, ".");
}

enum file_durability state_durability_before(const struct state *state, const char *path)
{
        struct stat records;
        struct stat st;

        return fstat(state->dir_fd, &records) == 0 && stat(path, &st) == 0 && records.st_dev == st.st_dev
                       ? FILE_ORDERED
                       : FILE_DURABLE;
}

int state_remove(const struct state *state, const char *file)
{
        file_remove_temporary(state->dir_fd, file);
        return unlinkat(state->dir_fd, file, 0) < 0 && errno != ENOENT ? -errno : 0;
}

void state_set_aside(const struct state *state, const char *file, char *ret_aside)
{
        (void)snprintf(ret_aside, STATE_ASIDE_SIZE, "%s" STATE_ASIDE_SUFFIX, file);
        (void)renameat(state->dir_fd, file, state->dir_fd, ret_aside); /* see state/state_dir.h */
}

size_t state_count_aside(const struct state *state)
{
        DIR *list = state_list(state);
        const struct dirent *entry;
        size_t count = 0;

        while (list != NULL && (entry = readdir(list)) != NULL)
                count += text_ends(entry->d_name, STATE_ASIDE_SUFFIX) ? 1 : 0;
        if (list != NULL)
                (void)closedir(list); /* only read from */
        return count;
}

void state_release(struct state *state)
{
        fd_close(&state->lock_fd);
        fd_close(&state->dir_fd);
}
