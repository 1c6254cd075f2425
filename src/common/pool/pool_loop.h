/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool_loop.h - images of a pool, and copies of them. For the files of pool_loop alone.
 */
#ifndef FLEXGRAFT_POOL_POOL_LOOP_H
#define FLEXGRAFT_POOL_POOL_LOOP_H

#include <stdbool.h>
#include <sys/stat.h>

#include "base/error.h"
#include "pool/pool_kind.h"
#include "state/config.h"

/* pool_loop_open() - an image of a pool, and what it is. Errors: ENOENT, without a message. */
int pool_loop_open(const struct config *config, const struct pool *pool, const char *id, int flags,
                   struct stat *ret_stat, struct error *error);

/* The functions of its row. */
int pool_loop_can_share(const struct config *config, const struct pool *pool, const char *id, bool snapshot,
                        struct error *error);
int pool_loop_keep_namespace(const struct config *config, const struct pool *pool, const char *id,
                             const char *namespace, struct error *error);
int pool_loop_copy(const struct config *config, const struct pool *pool, const char *id, const char *to, bool shares,
                   struct error *error);
int pool_loop_open_content(const struct config *config, const struct pool *pool, const char *id, bool write,
                           struct pool_content *ret_content, struct error *error);
void pool_loop_close_content(const struct config *config, const struct pool *pool, struct pool_content *content);
int pool_loop_sync(const struct config *config, const struct pool *pool, const char *id, struct error *error);
int pool_loop_restore(const struct config *config, const struct pool *pool, const char *id, const char *from,
                      bool shares, bool *ret_torn, struct error *error);
int pool_loop_unrestore(const struct config *config, const struct pool *pool, const char *id, struct error *error);

#endif
