/* SPDX-License-Identifier: Apache-2.0 */
/*
 * locks.h - locks of files, held where everybody sees them: on the filesystem itself, which may be a server's.
 *
 * A POSIX lock belongs to a process in the container; here to an open file description of its own for each owner and
 * file (F_OFD_SETLK). flock(2) belongs to the open file, and so it does here. Whoever has to wait for one is put aside:
 * no thread waits with it.
 */
#ifndef FLEXGRAFT_TRANSLATOR_LOCKS_H
#define FLEXGRAFT_TRANSLATOR_LOCKS_H

#include <fcntl.h>

#include "fuse_library.h"
#include "shared.h"

/* locks_begin() - start whoever asks again for those that wait. Returns 0 or negative errno. */
int locks_begin(void);

/* locks_getlk(), locks_setlk(), locks_flock() - answer F_GETLK, F_SETLK(W) and flock(2), now or later. */
void locks_getlk(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *file, struct flock *lock);
void locks_setlk(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *file, struct flock *lock, int wait);
void locks_flock(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *file, int operation);

/* locks_drop() - whatever an owner has on a file: it closed it. */
void locks_drop(struct node *node, uint64_t owner);

/* locks_rest() - run function() while whoever asks again does not. */
void locks_rest(void (*function)(void));

/*
 * locks_drop_file() - what owners have who first asked through this open file, which is gone: nobody tells of their
 * end. */
void locks_drop_file(struct node *node, int fd);

/* locks_changed() - one was let go: those that wait may have it now. */
void locks_changed(void);

#endif
