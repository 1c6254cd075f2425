/* SPDX-License-Identifier: Apache-2.0 */
/*
 * locks.h - file locks, held on the source's filesystem, so that they conflict with locks of the node and of other
 * clients of a server.
 *
 * A POSIX lock belongs to a process in the container. Here it belongs to an open file description of its own for each
 * owner and file (F_OFD_SETLK). A flock(2) belongs to the open file, here as there. A request that has to wait is put
 * in a list and retried by one thread (waiters.h): no other thread waits for a lock.
 *
 * When a lock is granted, the container's kernel drops what it remembers of the file, so that the holder reads what the
 * last one wrote; before it is released, what was written to mapped pages is written to the source.
 */
#ifndef FLEXGRAFT_REMAP_LOCKS_H
#define FLEXGRAFT_REMAP_LOCKS_H

#include <fcntl.h>

#include "fuse_library.h"
#include "shared.h"

/* locks_begin() - before(): waiters_begin(). Returns 0 or negative errno. */
int locks_begin(void (*before)(void));

/* locks_getlk(), locks_setlk(), locks_flock() - answer F_GETLK, F_SETLK(W) and flock(2), now or later. */
void locks_getlk(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *file, struct flock *lock);
void locks_setlk(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *file, struct flock *lock, int wait);
void locks_flock(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *file, int operation);

/* locks_drop() - release all locks of an owner on a file, which it closed. */
void locks_drop(struct node *node, uint64_t owner);

/*
 * locks_drop_file() - release the locks of the owners whose first request came through this open file, which is closed:
 * the kernel does not report the end of such an owner. fd -1: of all owners on this file.
 */
void locks_drop_file(struct node *node, int fd);

#endif
