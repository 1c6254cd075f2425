/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool.h - where volumes are made: /etc/flexgraft/pools.d/NAME.json, or NAME.json in the directory that
 * $FLEXGRAFT_POOLS names.
 *
 *      {"name": "fast", "type": "loop", "path": "/srv/fast", "maxPercent": 80}
 *      {"name": "big", "type": "lvm", "volumeGroup": "vg0"}
 *      {"name": "memory", "type": "pmem", "region": "region0"}
 *      {"name": "shared", "type": "pmem", "region": "region1", "mode": "lvm", "maxPercent": 50}
 *
 * The pool "default" needs no file: its images are beside the records.
 */
#ifndef FLEXGRAFT_POOL_POOL_H
#define FLEXGRAFT_POOL_POOL_H

#include <stdint.h>

#include "base/error.h"
#include "pool/pool_kind.h"
#include "state/config.h"
#include "state/file_key.h"

#define POOL_DEFAULT "default"

/* The attribute of an image that says which Kubernetes namespace has it. */
#define POOL_IMAGE_NAMESPACE "trusted.flexgraft.namespace"

/* pool_keys - those that the file of any pool may have, besides its kind's own. */
extern const struct file_key pool_keys[];

/*
 * pool_find() - a pool by its name.
 *
 * Errors:  EINVAL no name for a pool; ENOENT there is none; EBADMSG a broken file, with its line or key; EPERM the file
 * is not root's, or others may write to it.
 */
int pool_find(const struct config *config, const char *name, struct pool *ret_pool, struct error *error);

/*
 * pool_each() - call function() with every pool, sorted by name, until it returns other than 0, which is the result. A
 * pool with a broken file has only a name: its kind is NULL, and error says why.
 */
typedef int pool_function(const struct pool *pool, void *argument, struct error *error);
int pool_each(const struct config *config, pool_function *function, void *argument, struct error *error);

/* pool_each_implied() - the same of pools that have no file (pool/pool_implied.h). */
int pool_each_implied(const struct config *config, pool_function *function, void *argument, struct error *error);

/*
 * pool_put_location() - where its file says that the pool is, in words that a reboot does not change: "/srv/fast", "lvm:vg0",
 * "nfs:nas:/export". ret_location is "" where that cannot be told. PROVISION_LOCATION_MAX bytes.
 */
void pool_put_location(const struct config *config, const struct pool *pool, char *ret_location);

/* pool_share() - how many of its bytes the pool may use ("maxPercent"). */
uint64_t pool_share(const struct pool *pool, uint64_t bytes);

/*
 * pool_open() - the directory of a pool of images. Returns: its descriptor, owned by the caller.
 * Errors: ENODEV it is missing (that of "default" is made, unless only_read is set), or not the pool
 * (pool/pool_identity.h); EPERM it is not root's, or others may write to it.
 */
int pool_open(const struct config *config, const struct pool *pool, struct error *error);

/* pool_use() - the same, for a volume: a pool without an identity gets one. */
int pool_use(const struct config *config, const struct pool *pool, struct error *error);

/*
 * pool_check_answers() - that the filesystem of a pool of images or directories answers within a few seconds: for what
 * is about all pools, one of which must not hold up the others. Errors: ETIMEDOUT.
 */
int pool_check_answers(const struct config *config, const struct pool *pool, struct error *error);

#endif
