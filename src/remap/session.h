/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session.h - the daemon: threads that read requests and answer them.
 */
#ifndef FLEXGRAFT_REMAP_SESSION_H
#define FLEXGRAFT_REMAP_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "shared.h"

/* session_begin() - take over the state of the last daemon. With one thread. Returns 0 or negative errno. */
int session_begin(void);

/*
 * session_serve() - answer requests until the filesystem is unmounted (0) or an error. Calls ready(), whose second call
 * is to do nothing, with 0, or with -EOPNOTSUPP where mounts are to be id-mapped and the kernel cannot.
 */
int session_serve(void (*ready)(int r));

/*
 * session_rest() - run function() while no thread answers a request or starts a thread: a process that function() forks
 * finds all mutexes of the C library free.
 */
void session_rest(void (*function)(void));

#endif
