/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool.h - where volumes are made: pools.d/NAME.json in /etc/flexgraft, or in the directory $FLEXGRAFT_POOLS names.
 *
 *      {"name": "fast", "type": "loop", "path": "/srv/fast"}
 *
 * A pool "default", of images beside the records, is there without a file.
 */
#ifndef FLEXGRAFT_POOL_H
#define FLEXGRAFT_POOL_H

#include <limits.h>

#include "config.h"
#include "error.h"

/*
 * pool_open() - the directory of a pool of images.
 *
 * Gives:   ret_path, PATH_MAX bytes: its path.
 * Returns: its descriptor, owned by the caller.
 * Errors:  ENOENT no such pool, or its directory is missing (that of "default" is made); EBADMSG a broken file, with
 * its line or key; EPERM the file or the directory is not root's, or others may write to it.
 */
int pool_open(const struct config *config, const char *name, char *ret_path, struct error *error);

#endif
