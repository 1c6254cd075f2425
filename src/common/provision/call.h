/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call.h - one call of a volume tool while it runs, and the steps that its verbs consist of. For this folder alone.
 */
#ifndef FLEXGRAFT_PROVISION_CALL_H
#define FLEXGRAFT_PROVISION_CALL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "pool/pool.h"
#include "pool/pool_kind.h"
#include "pool/record.h"
#include "provision/profile.h"
#include "provision/request.h"
#include "state/config.h"
#include "state/state_dir.h"

struct provision_call {
        const struct provision_request *request;
        struct config config;
        struct state state;
        struct profiles profiles;
        const json_t *profile; /* the request's; NULL: none; borrowed from profiles */
        bool within;           /* another call, which has locks of the volume, and has asked who uses it */
        struct pool pool;
        const struct pool_kind *kind; /* the pool's */
        uint64_t pool_key;            /* its lock, once it is */
        bool pool_locked;
        unsigned pool_locks;                 /* how many were taken so far */
        unsigned blank_locks;                /* that, when the disk to adopt was seen to be blank */
        const struct pool_kind *locked_kind; /* of the pool whose lock it is */
        json_t *owners;                      /* of disks, by what put_key() makes; owned */
        json_t *locations;                   /* of pools, by name; owned */
        bool strays;                         /* among the owners are some of pools that cannot be read */
        json_t *unread;                      /* pools that cannot be looked at, and why; owned; of a list */
        json_t *paths;                       /* of disks, what found_object() makes, by put_name(); owned; of a list */
        json_t *reply;
};

/* provision_call_use_pool() - make a pool the call's. Errors: those of pool_find(). */
int provision_call_use_pool(struct provision_call *call, const char *name, struct error *error);

/*
 * provision_call_use_pool_of() - likewise that of a volume. Errors: ENODEV the pool's file says another type than it was made in: what
 * has the volume's id there, or that nothing has, says nothing of the volume.
 */
int provision_call_use_pool_of(struct provision_call *call, const struct provision_record *record, struct error *error);

/*
 * provision_call_check_location() - that the pool of a volume that is not found in it is where it was when the volume was
 * made. Errors: ENODEV its file says another location: that nothing is there says nothing of the volume.
 */
int provision_call_check_location(const struct provision_call *call, const struct pool *pool,
                                  const struct provision_record *record, struct error *error);

/* provision_call_lock_pool() - lock the call's pool, instead of the one it had locked. */
int provision_call_lock_pool(struct provision_call *call, struct error *error);
void provision_call_unlock_pool(struct provision_call *call);

/* provision_call_init_record() - what the request and its profile say of a volume in the call's pool. */
void provision_call_init_record(const struct provision_call *call, struct provision_record *ret_record);

/* provision_call_is_volume() - whether what has the volume's id is the volume. */
bool provision_call_is_volume(const struct provision_record *record, const struct pool_item *item);

/*
 * provision_call_look_again() - find a volume in the call's pool, and note in its record where that is. With the lock of
 * its name. Errors: ENOENT it is not there any more; ENODEV, as provision_call_check_location().
 */
int provision_call_look_again(const struct provision_call *call, struct provision_record *record,
                              struct pool_item *ret_item, struct error *error);

/* provision_call_is_fit() - whether volumes of such a pool can be what the profile and the request want. */
bool provision_call_is_fit(const struct provision_call *call, const struct pool *pool);

/* provision_call_check_target() - that the call's pool can have such a volume. Errors: EINVAL. */
int provision_call_check_target(const struct provision_call *call, const struct provision_record *record,
                                struct error *error);

/*
 * provision_call_check_room() - that the pool has room for a new volume. With the pool's lock. Takes: record, of which it reads the
 * parameters, and whether it is a snapshot. Errors: ENOSPC, and those of a pool that cannot be used.
 */
int provision_call_check_room(const struct provision_call *call, const struct provision_record *record,
                              uint64_t size_bytes, struct pool_measure *ret_measure, struct error *error);

/*
 * provision_call_check_type() - that the filesystem of a new volume, which is made when it is first used, can be made at
 * all. Errors: EINVAL.
 */
int provision_call_check_type(const struct provision_call *call, struct error *error);

/*
 * provision_call_check_filesystem() - that the filesystem of a new volume, of its record's size, can be made. kata: it
 * is for containers in virtual machines, and its filesystem is in an image in another. Errors: EINVAL.
 */
int provision_call_check_filesystem(const struct provision_call *call, const struct provision_record *record, bool kata,
                                    struct error *error);

void provision_call_release(struct provision_call *call);

/* owners.c: which disks are volumes. */
#define OWNER_KEY_SIZE (POOL_LOCATION_SIZE + PROVISION_LOCATION_MAX + PROVISION_ID_MAX)
int owners_read(struct provision_call *call, struct error *error);
const char *owners_find(const struct provision_call *call, const char *pool, const char *id);
/* owners_look() - the same for one disk, without owners_read(). PROVISION_NAME_MAX bytes. Returns 1: it is a volume; 0. */
int owners_look(struct provision_call *call, const char *pool, const char *id, char *ret_owner, struct error *error);
int owners_check_unused(const struct provision_call *call, const struct pool *pool, const char *id,
                        struct error *error);
/*
 * owners_wait_looked_at() - after EBUSY, with the pool's lock, which is released meanwhile: a moment, for a process that
 * only looks at the device of a disk of the call's pool. tries: 0 at first. Returns 1: it has waited; 0: that is not why.
 * owners_await_unused() - owners_check_unused(), which waits so.
 */
int owners_wait_looked_at(struct provision_call *call, const char *id, unsigned *tries, struct error *error);
int owners_await_unused(struct provision_call *call, const char *id, struct error *error);
/*
 * owners_check_apart() - that a directory of the call's pool lies in no volume, and has none in it; it would be removed with
 * it. new: it is not there yet, and has nothing in it. Errors: EEXIST.
 */
int owners_check_apart(struct provision_call *call, const char *id, bool new, struct error *error);
/*
 * owners_put_attached() - add to keys what is attached as the disk of a volume, and what stands on it: by the record of
 * the driver, without which nothing is. path: of the disk; NULL: its pool has it no more. owners_check_detached() - that
 * such a volume has no user. Errors: EBUSY.
 */
int owners_put_attached(const struct provision_call *call, const struct provision_record *record, const char *path,
                        char *keys, struct error *error);
int owners_check_detached(const struct provision_call *call, const struct provision_record *record,
                          struct error *error);

/*
 * create.c: what copy.c needs of it. create_undo() - after a failure, which is the one to report. create_forget() - after
 * EEXIST of the kind: what is there came since create_claim() looked, perhaps from another node, and stays. Returns
 * failure.
 */
int create_claim(struct provision_call *call, uint64_t size_bytes, struct provision_record *ret_record,
                 struct error *error);
void create_undo(struct provision_call *call, const struct provision_record *record);
int create_forget(struct provision_call *call, const struct provision_record *record, int failure);

/* create.c, adopt.c, copy.c, delete.c, list.c: the verbs, with the lock of the volume's name. */
int create_volume(struct provision_call *call, struct error *error);
int adopt_disk(struct provision_call *call, const char *id, struct provision_record *ret_record, struct error *error);
int adopt_match(struct provision_call *call, struct provision_record *ret_record, struct error *error);
/* copy_lock() - the locks of two names. */
int copy_lock(struct provision_call *call, const char *one, const char *other, struct error *error);
int copy_volume(struct provision_call *call, struct provision_record *ret_record, struct error *error);
/* copy_across.c: what has the id in the pool becomes the content of a new volume of the call's pool. Gives: its namespace. */
int copy_across(const struct provision_call *call, const struct pool *pool, const char *id,
                struct provision_record *record, struct error *error);
/*
 * restore.c: restore_check_room() - for the content of the snapshot; restore_put_back() - it is the volume's; both with
 * the pool's lock. restore_unrestore() - remove what a restore left that was killed, or end that.
 */
int restore_check_room(const struct provision_call *call, const struct provision_record *volume,
                       const struct provision_record *snapshot, bool shares, struct error *error);
int restore_put_back(struct provision_call *call, struct provision_record *volume,
                     const struct provision_record *snapshot, bool shares, struct error *error);
int restore_unrestore(struct provision_call *call, struct provision_record *record, struct error *error);
int delete_volume(struct provision_call *call, struct error *error);
/* What takes long to overwrite is not deleted while a node boots: EBUSY. */
#define DELETE_SOON_MAX_BYTES ((uint64_t)16 << 30)
int delete_check_soon(const struct provision_call *call, const struct provision_record *record, struct error *error);
int delete_check_thawed(const struct provision_call *call, const struct provision_record *record, struct error *error);
/*
 * delete_record_left() - remove the record of a volume whose directory another node has deleted, and perhaps made anew for
 * another volume. With the pool's lock; takes that of the name, without waiting. Errors: EAGAIN another call has it; EBUSY
 * the directory is the volume's still, or a pod has that; EPROTONOSUPPORT; those of the server.
 */
int delete_record_left(struct provision_call *call, const char *name, const char *id, struct error *error);
int delete_finish(struct provision_call *call, struct provision_record *record, const char *asked, struct error *error);
int list_pools(struct provision_call *call, struct error *error);

/*
 * ---- idempotency.c: requests with an "operation" id: the same request again gets the same reply, whatever happened to the
 * volume since. Kept for a week, in "operations" of the state directory.
 */

/*
 * idempotency_recall() - the reply that was given. Gives: ret_reply, owned by the caller; NULL: none yet.
 * Errors: EEXIST another request has used this id.
 */
int idempotency_recall(const char *state_dir, const char *id, const json_t *request, json_t **ret_reply,
                       struct error *error);

/* idempotency_remember() - keep the reply that is about to be given; it survives a power failure. */
int idempotency_remember(const char *state_dir, const char *id, const json_t *request, const json_t *reply,
                         struct error *error);

#endif
