/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool_identity.h - whether the directory of a pool of images is the pool, or what lies below a filesystem that is not mounted.
 *
 * A pool that was used has an identity: the target of the symbolic link ".flexgraft-pool" in its directory (which takes no block),
 * and a copy of it in "known-pools" of the state directory. Without the link, or with another pool's, the pool is missing. An
 * administrator who knows better makes an empty file of that name: the pool gets a new identity when it is used next.
 */
#ifndef FLEXGRAFT_POOL_POOL_IDENTITY_H
#define FLEXGRAFT_POOL_POOL_IDENTITY_H

#include <stdbool.h>

#include "base/error.h"
#include "pool/pool_kind.h"
#include "state/config.h"

/*
 * pool_identity_check() - that the directory is the pool. use: give it an identity, where it has none yet; where that
 * cannot be written it has none.
 *
 * Errors: ENODEV the pool is missing; EBADMSG its identity is damaged.
 */
int pool_identity_check(const struct config *config, const struct pool *pool, int pool_fd, bool use,
                        struct error *error);

/*
 * pool_identity_recall() - the identity of a pool in the state directory, if the pool is where it was then: key is what
 * says where in the pool's file, and value what that says now. ret_id is "" where nothing is known.
 * PROVISION_IDENTITY_MAX bytes.
 */
int pool_identity_recall(const struct config *config, const char *pool_name, const char *key, const char *value,
                         char *ret_id, struct error *error);

/* pool_identity_remember() - replace that. Of several processes at once, each must have the same identity. */
int pool_identity_remember(const struct config *config, const char *pool_name, const char *key, const char *value,
                           const char *id, struct error *error);

/* pool_identity_choose() - a random UUID from the kernel (random(4)); PROVISION_IDENTITY_MAX bytes. */
int pool_identity_choose(char *ret_identity, struct error *error);

#endif
