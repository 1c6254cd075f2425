/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool_trash.h - where the directories of deleted volumes are until they are empty: ".flexgraft-trash" of their pool.
 *
 * Each volume has a directory there, named after its id and its project: what is in it, and the project's limit, a
 * killed call has left.
 */
#ifndef FLEXGRAFT_POOL_POOL_TRASH_H
#define FLEXGRAFT_POOL_POOL_TRASH_H

#include "base/error.h"

/*
 * pool_trash_discard() - ensure that a volume's directory is gone, with all that is in it, and its project's limit.
 *
 * dir_fd: what has the directory, by its name, on the pool's filesystem; negative: it is gone already.
 * Errors: EBUSY it is a mount point, and nothing was changed; EAGAIN something is mounted in it, or others write to
 * it, and it is gone by its name; ECANCELED.
 */
int pool_trash_discard(int pool_fd, int dir_fd, const char *name, const char *id, struct error *error);

/*
 * pool_trash_wipe() - ensure that a volume's directory is empty, with itself as the trash: it needs no room. Its owner, mode
 * and attributes stay. Errors: EAGAIN; ECANCELED.
 */
int pool_trash_wipe(int dir_fd, const char *id, struct error *error);

/* pool_trash_empty() - what killed calls left, of all volumes. */
int pool_trash_empty(int pool_fd, struct error *error);

#endif
