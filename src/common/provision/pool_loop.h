/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool_loop.h - a pool of image files in a directory.
 *
 * Parameters: "preallocate": "true" (the default: what a volume was promised is its own) or "false" (a sparse file,
 * counted as if it were full).
 */
#ifndef FLEXGRAFT_PROVISION_POOL_LOOP_H
#define FLEXGRAFT_PROVISION_POOL_LOOP_H

#include "provision/pool_kind.h"

extern const struct pool_kind pool_loop;

#endif
