/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wish.h - the mounts that are wanted in a container whenever it runs ("persist"): one file per container,
 * wanted/KEY.json in the state directory, found by the container's identity (container/identity.h) alone.
 *
 * What is wanted is written with fsync, before the mount is made and after nothing else: a power cut loses neither a
 * wish nor that it was taken back.
 */
#ifndef FLEXGRAFT_STATE_WISH_H
#define FLEXGRAFT_STATE_WISH_H

#include <jansson.h>

#include "base/error.h"
#include "container/container.h"
#include "state/record.h"
#include "state/state_dir.h"
#include "state/use_index.h"

#define WISH_KEY_SIZE 17 /* terminated */
#define WISH_MAX 256     /* in one container */
#define WISH_ID_SIZE 32  /* of wish_id(), terminated */

struct wish_record {
        char container[CONTAINER_IDENTITY_MAX]; /* whose file it is */
        json_t *mounts;                         /* owned: an array of what wish_entry() makes */
};

extern const struct record_table wish_record_table;

/* wish_key() - the name of a container's file, without its suffix. */
void wish_key(const char *identity, char ret_key[WISH_KEY_SIZE]);

/* wish_id() - the id of a mount that is wanted, if its request has none. No request may choose such an id. */
void wish_id(const char *identity, const char *target, char ret_id[WISH_ID_SIZE]);

/*
 * wish_entry() - a mount that is wanted. called: the container, as the request names it; source: what tells
 * it from another one of its name, "" nothing; request: an entry of
 * mount-batch, without its container; borrowed. Returns an owned value; NULL: no memory.
 */
json_t *wish_entry(const char *id, const char *called, const char *target, const char *source, const json_t *request);

/* wish_open() - as state_open(). */
int wish_open(const char *state_dir, bool create, struct state *ret_state, struct error *error);

/* wish_any() - whether anything is wanted in any container. */
bool wish_any(const char *state_dir);

/*
 * wish_read() - what is wanted in a container; released by wish_release(). wish_read_key(): by its file.
 * Errors: ENOENT nothing; EBADMSG the file is damaged: it stays, so that the container does not start without it.
 */
int wish_read(const struct state *state, const char *identity, struct wish_record *ret_wanted, struct error *error);
int wish_read_key(const struct state *state, const char *key, struct wish_record *ret_wanted, struct error *error);

/*
 * wish_put() - ensure that this entry, and no other one, is wanted on its target; NULL: that none is. On the disk
 * when it returns. Takes the lock of the container's file for so long; a worker that is killed keeps it until the
 * state is released, so undo with the same state.
 *
 * Gives:  ret_change, zeroed by the caller; also after a failure, and when this process is killed.
 * Errors: E2BIG more than WISH_MAX are wanted in the container.
 */
struct wish_change {
        json_t *before; /* owned: what was wanted there; NULL: nothing */
        bool begun;     /* the file may have been changed */
};

int wish_put(struct state *state, const char *identity, const char *target, const json_t *entry,
             struct wish_change *ret_change, struct error *error);

/*
 * wish_hold() - wait for the lock of what is wanted on a target, and hold it until the state is released. A call holds
 * it from before it writes a wish until the mount has its record; a removal that knows no mount, and so has no lock of
 * one, from before it looks for such records until the wish is taken back. After the locks of mounts.
 */
int wish_hold(struct state *state, const char *identity, const char *target, struct error *error);

/* wish_tidy() - remove what a call left that was killed while it wrote a container's file; key: NULL: any. */
void wish_tidy(struct state *state, const char *key);

/* wish_each() - of every container, until function() returns other than 0; as record_each(). */
int wish_each(const struct state *state, record_function *function, void *argument, struct error *error);

/*
 * wish_each_called() - likewise, of the containers that may be called so (container_identity_called(), or by the request
 * of one of the mounts); wish_each_of_id() - likewise, where a mount of this id is wanted. The index finds them
 * (state/use_index.h); while it is not complete they are all.
 */
int wish_each_called(const struct state *state, const char *name, record_function *function, void *argument,
                     struct error *error);
int wish_each_of_id(const struct state *state, const char *id, record_function *function, void *argument,
                    struct error *error);

/*
 * ---- for the index as a whole (state/uses): the keys of the container and of one mount in it, of USE_KEYS_SIZE bytes; and
 * whether a container's file has a key.
 */
void wish_keys(const struct wish_record *wanted, const json_t *entry, char *ret_keys);
bool wish_has_key(const struct wish_record *wanted, const char *key);

void wish_release(struct wish_record *wanted);
#define cleanup_wish __attribute__((cleanup(wish_release)))

#endif
