/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lookup.h - a container's id -> its first process, from the state files of whoever runs it. Runs none of them.
 */
#ifndef FLEXGRAFT_CONTAINER_LOOKUP_H
#define FLEXGRAFT_CONTAINER_LOOKUP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

#define CONTAINER_ID_FULL 64 /* hexadecimal digits of a full id */

struct container_process {
        pid_t pid;
        uint64_t start_time; /* clock ticks since boot, where the runtime wrote it down; 0 where it did not: then */
        int64_t written_s;   /* when the pid was written down, in seconds since 1970, */
        char full_id[CONTAINER_ID_FULL + 1]; /* and the id that its control group's path may hold */
};

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
