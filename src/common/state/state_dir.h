/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state_dir.h - the directory of records: intent, one file per record, and the locks beside them.
 */
#ifndef FLEXGRAFT_STATE_STATE_DIR_H
#define FLEXGRAFT_STATE_STATE_DIR_H

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct state {
        int dir_fd;  /* the directory of this sort of record */
        int lock_fd; /* its file of locks, once a lock was asked for */
};

#define STATE_NONE                                                                                                     \
        {                                                                                                              \
                .dir_fd = -EBADF, .lock_fd = -EBADF                                                                    \
        }

/*
 * state_open() - open DIR/sort, made with mode 0700 when create is set.
 *
 * Errors:  ENOENT it is not there (and create not set); EPERM it belongs to somebody else, or others may write to it,
 *          so that its records cannot be trusted. Mere readability by others is taken back.
 */
int state_open(const char *state_dir, const char *sort, bool create, struct state *ret_state, struct error *error);

/*
 * state_lock() - wait until nobody else holds this key, and hold it until the state is released or the process ends.
 *
 * A lock is one byte of one file, at the key's offset: nothing to leave behind, whoever dies (an open file
 * description lock, fcntl(2)). Take several in ascending order of key. Errors: EDEADLK, ENOLCK.
 */
int state_lock(struct state *state, uint64_t key, struct error *error);

/* state_unlock() - let go of one before that. */
void state_unlock(struct state *state, uint64_t key);

/* state_try_lock() - the same if nobody holds it, without waiting; false otherwise, and when it cannot be told. */
bool state_try_lock(struct state *state, uint64_t key);

/* state_is_free() - whether nobody else holds it; false also when it cannot be told. */
bool state_is_free(struct state *state, uint64_t key);

/* state_list() - all files of the directory, for readdir(); NULL with errno. Closed by the caller (closedir). */
DIR *state_list(const struct state *state);

/* state_remove() - a file is gone afterwards, with what a killed process left of writing it. Returns 0 or negative
 * errno.
 */
int state_remove(const struct state *state, const char *file);

/*
 * state_set_aside() - a file that is torn or foreign gets the name FILE.bad: never trusted, never fatal to others, and
 * there for whoever wants to look. A read-only state keeps it, and it stays distrusted. Gives: ret_aside, of
 * STATE_ASIDE_SIZE bytes.
 */
#define STATE_ASIDE_SUFFIX ".bad"
#define STATE_ASIDE_SIZE (NAME_MAX + sizeof STATE_ASIDE_SUFFIX)
void state_set_aside(const struct state *state, const char *file, char *ret_aside);

void state_release(struct state *state);
#define cleanup_state __attribute__((cleanup(state_release)))

#endif
