/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state_dir.h - the directory of records: one file per record, which holds intent, and the locks beside them.
 */
#ifndef FLEXGRAFT_STATE_STATE_DIR_H
#define FLEXGRAFT_STATE_STATE_DIR_H

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/failure.h"
#include "base/file.h"

struct state {
        int dir_fd;  /* the directory of this type of record */
        int lock_fd; /* its file of locks, once there was a lock */
};

#define STATE_NONE                                                                                                     \
        {                                                                                                              \
                .dir_fd = -EBADF, .lock_fd = -EBADF                                                                    \
        }

/*
 * state_open() - open DIR/sort, made with mode 0700 when create is set.
 *
 * Errors:  ENOENT it is not there (and create not set); EPERM it belongs to another user, or others may write to it:
 *          its records cannot be trusted. Where others may only read it, that permission is removed.
 */
int state_open(const char *state_dir, const char *sort, bool create, struct state *ret_state, struct error *error);

/* state_opened() - the directory itself, if state_open() has opened and checked it, borrowed; else a negative number. */
int state_opened(const char *state_dir);

/*
 * state_lock() - wait for the lock of a key, and hold it until the state is released or the process exits.
 *
 * A lock is one byte of one file, at the key's offset (an open file description lock, fcntl(2)): a killed process
 * leaves nothing behind. Take several in ascending order of key. Errors: EDEADLK, ENOLCK.
 */
int state_lock(struct state *state, uint64_t key, struct error *error);

/* state_unlock() - release one before that. */
void state_unlock(struct state *state, uint64_t key);

/* state_try_lock() - the same without waiting; false: another process holds it, or there was an error. */
bool state_try_lock(struct state *state, uint64_t key);

/*
 * state_open_locks() - the file of the locks once more, for locks that do not end with those of the state: each is held as long
 * as any process has this descriptor. Owned by the caller; negative after an error.
 */
int state_open_locks(const struct state *state);

/*
 * ---- locks of processes that hang and are left behind (process/worker.h), which lie apart from the others. state: its
 * lock_fd is one of state_open_locks(), which such a process has, too.
 *
 * state_try_lock_for_ever() - take one without waiting; false: another process holds it, or there was an error.
 * state_is_held_for_ever() - whether another process holds that one; state_is_any_held_for_ever() - or any. Both: false also
 * after an error.
 */
bool state_try_lock_for_ever(struct state *state, uint64_t key);
bool state_is_held_for_ever(struct state *state, uint64_t key);
bool state_is_any_held_for_ever(struct state *state);

/* state_is_free() - whether no other process holds it; false also after an error. */
bool state_is_free(struct state *state, uint64_t key);

/* state_lock_offset() - which byte of the file of the locks it is. */
off_t state_lock_offset(uint64_t key);

/* state_lock_file() - the file of the locks: st_dev and st_ino say which. Returns 0 or negative errno; ENOENT: no lock yet. */
int state_lock_file(const struct state *state, struct stat *ret_st);

/* state_list() - all files of the directory, for readdir(); NULL with errno. Closed by the caller (closedir). */
DIR *state_list(const struct state *state);

/*
 * state_durability_before() - how a record must be written that is to be on the disk before what is written later below
 * this path: in order where both are on the same filesystem, else durably.
 */
enum file_durability state_durability_before(const struct state *state, const char *path);

/* state_remove() - ensure that a file is gone, and its temporary file. Returns 0 or negative errno. */
int state_remove(const struct state *state, const char *file);

/*
 * state_set_aside() - rename a damaged file to FILE.bad: it is not read again, and an administrator can look at it. On
 * a read-only filesystem it keeps its name, and is refused each time. Gives: ret_aside, of STATE_ASIDE_SIZE bytes.
 */
#define STATE_ASIDE_SUFFIX ".bad"
#define STATE_ASIDE_SIZE (NAME_MAX + sizeof STATE_ASIDE_SUFFIX)
void state_set_aside(const struct state *state, const char *file, char *ret_aside);

/* state_count_aside() - how many there are still. */
size_t state_count_aside(const struct state *state);

void state_release(struct state *state);
#define cleanup_state __attribute__((cleanup(state_release)))

/* ---- hints.c: what to do about failures of what is remembered: policies, records, volumes' content */
extern const struct hint state_hints[];

/* With those of the folders below; for failure_hint(). */
extern const struct hint *const state_all_hints[];

#endif
