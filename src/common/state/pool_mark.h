/* SPDX-License-Identifier: Apache-2.0 */
/* pool_mark.h - what tells the directory of a pool of images from others: pool/pool_identity.h has its meaning. */
#ifndef FLEXGRAFT_STATE_POOL_MARK_H
#define FLEXGRAFT_STATE_POOL_MARK_H

#include <stdbool.h>

#define POOL_IDENTITY_LINK ".flexgraft-pool"

/* pool_mark_beside() - whether a file, by its absolute path, is in the directory of a pool. */
bool pool_mark_beside(const char *path);

#endif
