/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lookup.h - a container's id -> its first process, from the state files of whoever runs it. Runs none of them.
 */
#ifndef FLEXGRAFT_CONTAINER_LOOKUP_H
#define FLEXGRAFT_CONTAINER_LOOKUP_H

#include <stdbool.h>

#include "base/error.h"
#include "container/state_file.h"

/* container_lookup_runtimes() - the runtimes known, separated by commas: for errors and help. */
const char *container_lookup_runtimes(void);

/* container_lookup_runtime_known() - whether this is one of them. */
bool container_lookup_runtime_known(const char *runtime);

/*
 * container_lookup_find() - the process of the container with this id (or, where the runtime has them, this name or the
 * first 12 or more characters of the id).
 *
 * Runs in: the node's mount namespace; reads files of root's below /run and /var/lib.
 * Takes:   id, already checked to be a single path component; runtime, or NULL for whichever knows it.
 * Errors:  ENOENT nobody knows it; ENOTUNIQ it could be several; ESRCH it is known and not running; EBADMSG a state
 *          file that cannot be read.
 */
int container_lookup_find(const char *id, const char *runtime, struct container_process *ret_process,
                          struct error *error);

#endif
