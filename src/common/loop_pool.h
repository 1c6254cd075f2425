/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop_pool.h - a pool of image files in a directory.
 *
 * Parameters: "preallocate": "true" (the default: what a volume was promised is its own) or "false" (a sparse file,
 * counted as if it were full).
 */
#ifndef FLEXGRAFT_LOOP_POOL_H
#define FLEXGRAFT_LOOP_POOL_H

#include "pool_kind.h"

extern const struct pool_kind loop_pool;

#endif
