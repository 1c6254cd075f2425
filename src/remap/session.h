/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session.h - the daemon's session with the kernel: each request is given to libfuse, which calls the operations.
 */
#ifndef FLEXGRAFT_REMAP_SESSION_H
#define FLEXGRAFT_REMAP_SESSION_H

#include <linux/fuse.h>
#include <stddef.h>

/*
 * session_begin() - take over the state of the last daemon. With one thread. ready(), whose second call is to do nothing, is
 * called later: with 0 when the daemon serves, or with -EOPNOTSUPP where mounts are to be id-mapped and the kernel cannot.
 * Returns 0 or negative errno.
 */
int session_begin(void (*ready)(int r));

/* session_greet() - give the new session the FUSE_INIT request that an earlier daemon answered. */
void session_greet(void);

/* session_is_ready() - the daemon is about to read requests: call ready(), unless FUSE_INIT must be answered first. */
void session_is_ready(void);

/* session_process() - answer a request, now or later. It is in this thread's buffer, or that of a waiter. */
void session_process(struct fuse_in_header *header, size_t size);

#endif
