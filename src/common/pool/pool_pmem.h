/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool_pmem.h - what the kinds of pool of type pmem have in common.
 *
 * A pool's file names its region by its device, "region1", which another has after modules were added, or by its identity,
 * the iset_id. Where it gives the device, the identity is remembered with the first use, in "known-pools" of the state
 * directory, and from then on the pool is in the region that has it.
 */
#ifndef FLEXGRAFT_POOL_POOL_PMEM_H
#define FLEXGRAFT_POOL_POOL_PMEM_H

#include "base/error.h"
#include "block/pmem.h"
#include "pool/pool_kind.h"
#include "state/config.h"
#include "state/file_key.h"

extern const struct file_key pool_pmem_keys[];
extern const struct file_key pool_pmem_parameters[];

/* pool_pmem_recall() - as recall of struct pool_kind: the region's identity, once that is known, in place of its name. */
int pool_pmem_recall(const struct config *config, struct pool *pool, struct error *error);

/* pool_pmem_know() - ensure that the region's identity is known, where it is there and has one. Needs the helper of
 * block/pmem where it is not known yet. */
void pool_pmem_know(const struct config *config, struct pool *pool);

/* pool_pmem_locate() - as locate of struct pool_kind: by the region's identity, whatever the pool calls it. */
int pool_pmem_locate(const struct config *config, const struct pool *pool, char *ret_location, struct error *error);

/* pool_pmem_check_labels() - note the problem of a region in which no namespace can be made: ENODATA it has no labels;
 * EOPNOTSUPP nor can it have any. */
void pool_pmem_check_labels(const struct pmem_region *region, struct pool_measure *measure);

#endif
