/* SPDX-License-Identifier: Apache-2.0 */
/*
 * provision.h - volumes made, adopted, given back, listed and measured; the whole work of the volume tools.
 *
 * A record is written before anything is made or taken away, and says which: whoever is killed half way and called
 * again ends it. Locks are taken in this order: the operation's id, the volume's name, its pool.
 */
#ifndef FLEXGRAFT_PROVISION_PROVISION_H
#define FLEXGRAFT_PROVISION_PROVISION_H

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"
#include "provision/request.h"
#include "state/config.h"

/* provision_begin() - start who runs lvm, and who has libndctl. Before privileges_drop(); they end with us. */
int provision_begin(int argc, char **argv, struct error *error);

/* provision_end() - end them, with whatever they run. */
void provision_end(void);

/*
 * provision_make() and provision_unmake() - the work of volume-create and volume-delete, for who is in a worker
 * already. The request's json is not needed. Errors: those of provision_run().
 */
int provision_make(const struct config *config, const struct provision_request *request, struct error *error);
int provision_unmake(const struct config *config, const char *name, struct error *error);

/*
 * provision_grow() - have a volume grow by function(), which gives how large it is then: one that volume-create has
 * made no further than its pool allows, and its record says so. Errors: ENOSPC, with how far it could; EBUSY it is half
 * made, or half deleted; those of function().
 */
typedef int provision_grow_function(void *argument, uint64_t *ret_size_bytes, struct error *error);
int provision_grow(const struct config *config, const char *name, uint64_t size_bytes,
                   provision_grow_function *function, void *argument, struct error *error);

/*
 * provision_tidy() - end what calls that were killed had begun, and nobody called again: what was half made, or half
 * given back, goes. What another call is at is left alone.
 *
 * tell: called for each, with error NULL when it is done, or would be (dry_run).
 */
typedef void provision_tell(const char *name, const struct error *error, void *argument);
int provision_tidy(const struct config *config, bool dry_run, provision_tell *tell, void *argument,
                   struct error *error);

/*
 * provision_run() - do what the request asks for, in a worker that is given up on when it hangs.
 *
 * Gives:   ret_reply, the whole answer; owned by the caller.
 * Errors:  EEXIST another volume of this name, or something in the pool that is not ours to take; ENOSPC, with the
 * largest volume that there is room for; EBUSY somebody uses it; ENOENT no such pool, profile or disk; ESTALE an
 * inactive profile.
 */
int provision_run(const struct provision_request *request, json_t **ret_reply, struct error *error);

#endif
