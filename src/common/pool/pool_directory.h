/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool_directory.h - volumes that are directories: what the driver and volume-expand need of them, their projects, and
 * where those are that were deleted.
 */
#ifndef FLEXGRAFT_POOL_POOL_DIRECTORY_H
#define FLEXGRAFT_POOL_POOL_DIRECTORY_H

#include <stdint.h>

#include "base/error.h"
#include "pool/pool_kind.h"
#include "pool/record.h"
#include "state/config.h"

/*
 * pool_directory_open() - the directory of a volume, with O_PATH. Gives: ret_path, of PATH_MAX bytes. Errors: ENOENT
 * it is not there any more; those of pool_open().
 */
int pool_directory_open(const struct config *config, const struct provision_record *record, char *ret_path,
                        struct error *error);

/*
 * pool_directory_grow() - set a volume's limit anew, also while it is used. Where its filesystem keeps to no limits
 * only the record knows the size. Gives: ret_size_bytes, rounded up to whole blocks.
 * Errors: EINVAL its directory has another project than it was given.
 */
int pool_directory_grow(const struct config *config, const struct provision_record *record, uint64_t size_bytes,
                        uint64_t *ret_size_bytes, struct error *error);

/* ---- pool_project.c: the project of a volume that is a directory, where its filesystem keeps to quotas of projects */

/*
 * pool_project_assign() - give a new directory a project, whose limit is the volume's size. With the pool's lock.
 * Gives: ret_identity, of PROVISION_IDENTITY_MAX bytes, for the record: which; "" without quotas.
 */
int pool_project_assign(int fd, const struct provision_record *record, char *ret_identity, struct error *error);

/*
 * pool_project_grow() - set its limit anew. Errors: EINVAL the directory has another project now than its record says;
 * EOPNOTSUPP it was adopted, with a limit.
 */
int pool_project_grow(int fd, const struct provision_record *record, uint64_t size_bytes, struct error *error);

/*
 * ---- pool_trash.c: where the directories of deleted volumes are until they are empty: ".flexgraft-trash" of their pool.
 *
 * Each volume has a directory there, named after its id and its project: what is in it, and the project's limit, a
 * killed call has left.
 */

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
