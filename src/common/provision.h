/* SPDX-License-Identifier: Apache-2.0 */
/*
 * provision.h - volumes made, adopted, given back, listed and measured; the whole work of the volume tools.
 *
 * A record is written before anything is made or taken away, and says which: whoever is killed half way and called
 * again ends it. Locks are taken in this order: the operation's id, the volume's name, its pool.
 */
#ifndef FLEXGRAFT_PROVISION_H
#define FLEXGRAFT_PROVISION_H

#include <jansson.h>

#include "error.h"
#include "provision_request.h"

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
