/* SPDX-License-Identifier: Apache-2.0 */
/*
 * provision.h - create, adopt, delete, list and measure volumes: the work of the volume tools.
 *
 * A record is written before a volume is created or deleted, and says which: after a killed call the same call ends the
 * work. Locks are taken in this order: the operation's id, the volume's name, its pool.
 */
#ifndef FLEXGRAFT_PROVISION_PROVISION_H
#define FLEXGRAFT_PROVISION_PROVISION_H

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"
#include "provision/profile.h"
#include "provision/request.h"
#include "state/config.h"

/* provision_begin() - start the helper processes of all kinds of pool. Before privileges_drop(); they end with us. */
int provision_begin(int argc, char **argv, struct error *error);

/* provision_end() - end them, and the commands they run. */
void provision_end(void);

/*
 * provision_make() and provision_unmake() - the work of volume-create and volume-delete, for a caller that is in a
 * worker already. The request's json may be NULL. Errors: those of provision_run().
 *
 * Takes: soon, not to delete what takes long to overwrite (EBUSY), nor to wait for another call (EINPROGRESS).
 * Gives: ret_problem, why the file of profiles was rejected where the request names a profile; "": it was not.
 */
int provision_make(const struct config *config, const struct provision_request *request,
                   char ret_problem[PROFILES_PROBLEM_SIZE], struct error *error);
int provision_unmake(const struct config *config, const char *name, bool soon, struct error *error);

/* How a volume is to grow. */
struct provision_growth {
        uint64_t size_bytes;
        uint64_t limit_bytes; /* of what it may have then; 0: none */
        bool asked;           /* somebody wants it to have this size, and not at least this size */
        bool preallocate;     /* an image gets all its blocks */
};

/*
 * provision_grow() - grow a volume with function(), which gives its new size. It grows only as far as its pool allows,
 * unless the driver made it sparse, in a pool without maxPercent; and its record has the new size.
 *
 * Errors: ENOSPC, with how far it can grow; EBUSY its creation or deletion has not finished; EINVAL it has more already;
 * ERANGE its pool would make it larger than the limit; those of function().
 */
typedef int provision_grow_function(void *argument, uint64_t *ret_size_bytes, struct error *error);
int provision_grow(const struct config *config, const char *name, const struct provision_growth *growth,
                   provision_grow_function *function, void *argument, struct error *error);

/* provision_fail_absent() - ENOENT: there is no volume of this name. */
int provision_fail_absent(const char *operation, const char *name, struct error *error);

/* provision_describe() - a volume as replies have it; owned by the caller. Errors: ENOENT. */
int provision_describe(const struct config *config, const char *name, json_t **ret_volume, struct error *error);

/* Who keeps a volume still while its content is read; all of it with the lock of the volume. */
struct provision_still {
        bool attached; /* the volume is, for this driver or a container */
        bool mounted;  /* somebody may write to its filesystem */
        bool busy;     /* somebody may write to the device itself */
        /* everything is on its device, and nobody writes to its filesystem until end(), for so many seconds at most */
        int (*begin)(void *argument, unsigned seconds, struct error *error);
        int (*end)(void *argument, struct error *error); /* Errors: ETIMEDOUT the time was over before */
        /* a call was killed, with all its processes, between begin() and end() */
        int (*end_killed)(void *argument, struct error *error);
        void *argument;
};

/*
 * provision_snapshot() - the work of volume-snapshot, for a caller that is in a worker already.
 *
 * Gives:   ret_reply, the whole reply; owned by the caller.
 * Errors:  ENOENT no such volume, or snapshot; EEXIST something else has the snapshot's name; ENOSPC; EOPNOTSUPP its pool
 *          has no snapshots; EBUSY to take: it is mounted, and would be copied; to restore: it is in use.
 */
int provision_snapshot(const struct config *config, const struct provision_request *request,
                       const struct provision_still *still, json_t **ret_reply, struct error *error);

/*
 * provision_tidy() - delete volumes whose creation or deletion was killed, and write the size of those whose image has
 * grown. What a running call works on is skipped.
 *
 * thaw: called before a snapshot that was begun is deleted, whose record tells that the filesystem of its volume may be frozen: with
 * the snapshot's lock. It stays where that fails.
 * tell: called for each, with what was done, and with error NULL when it is, or would be (dry_run).
 */
typedef int provision_thaw(const struct config *config, const char *name, struct error *error);
typedef void provision_tell(const char *name, const char *did, const struct error *error, void *argument);
int provision_tidy(const struct config *config, bool dry_run, provision_thaw *thaw, provision_tell *tell,
                   void *argument, struct error *error);

/*
 * provision_run() - carry out the request, in a worker with a time limit.
 *
 * Gives:   ret_reply, the whole reply; owned by the caller.
 * Errors:  EEXIST another volume of this name, or something else in the pool; ENOSPC, with the largest volume that
 * there is room for; EBUSY it is in use; ENOENT no such pool, profile or disk; ESTALE an inactive profile.
 */
int provision_run(const struct provision_request *request, json_t **ret_reply, struct error *error);

#endif
