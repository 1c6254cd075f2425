/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lookup.h - a container's id -> its first process, from the state files of container runtimes. Executes nothing.
 */
#ifndef FLEXGRAFT_CONTAINER_LOOKUP_H
#define FLEXGRAFT_CONTAINER_LOOKUP_H

#include <stdbool.h>

#include "base/error.h"
#include "container/state_file.h"

/* container_lookup_runtimes() - the supported runtimes, separated by commas: for errors and help. */
const char *container_lookup_runtimes(void);

/* container_lookup_runtime_known() - whether this runtime is supported. */
bool container_lookup_runtime_known(const char *runtime);

/*
 * container_lookup_find() - the process of the container with this id, or, if the runtime supports it, with this name
 * or an id that begins with these 12 or more characters.
 *
 * Runs in: the node's mount namespace; reads files of root's below /run and /var/lib.
 * Takes:   id, checked to be a single path component; runtime, or NULL for all.
 * Errors:  ENOENT no runtime has it; ENOTUNIQ several match; ESRCH it is not running; EBADMSG a state file that cannot
 *          be parsed.
 */
int container_lookup_find(const char *id, const char *runtime, struct container_process *ret_process,
                          struct error *error);

#endif
