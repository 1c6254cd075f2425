/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool_implied.h - pools that nobody wrote a file for: parameters of volume-create name a share of an NFS server, as those
 * of csi-driver-nfs do. What they say of the pool is kept in "shares" of the state directory, in the form of a pool's
 * file, under a name that is a hash of it. The same parameters are the same pool on every node.
 */
#ifndef FLEXGRAFT_POOL_POOL_IMPLIED_H
#define FLEXGRAFT_POOL_POOL_IMPLIED_H

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"
#include "state/config.h"
#include "state/file_key.h"

#define POOL_IMPLIED_DIRECTORY "shares" /* of the state directory */

/* The keys of parameters, all texts; mountOptions are separated by commas. Ended by a row without a name. */
extern const struct file_key pool_implied_keys[];

/* pool_implied_by() - whether parameters (or NULL) name a share. */
bool pool_implied_by(const json_t *parameters);

/*
 * pool_imply() - the pool of such parameters, from now on found by its name. Gives: ret_name, of POOL_NAME_MAX bytes.
 * Errors: EINVAL a value is wrong, or one of "server" and "share" is missing.
 */
int pool_imply(const struct config *config, const json_t *parameters, char *ret_name, struct error *error);

/* pool_implied_is_name() - whether a pool's name is one of these. */
bool pool_implied_is_name(const char *name);

/* pool_implied_load() - the pool's file; the caller owns *ret_object. Errors: ENOENT. */
int pool_implied_load(const struct config *config, const char *name, json_t **ret_object, struct error *error);

#endif
