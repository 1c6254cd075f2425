/* SPDX-License-Identifier: Apache-2.0 */
/*
 * closing.h - closing descriptors of files that are released: the kernel names them in no request any more.
 */
#ifndef FLEXGRAFT_REMAP_CLOSING_H
#define FLEXGRAFT_REMAP_CLOSING_H

#include <linux/fuse.h>
#include <stdbool.h>

#include "request.h"
#include "shared.h"

/* So many are left to requests and waiters at most. */
#define CLOSING_MAX (THREADS_MAX * (REQUEST_FILES_MAX + 1) + WAITERS_MAX)

/* closing_begin() - once per daemon. is_used(): whether a request that was moved out of its buffer uses that descriptor. */
void closing_begin(bool (*is_used)(int fd));

/*
 * closing_close() - close one that is recorded as USE_RELEASED. But a thread may still use the number, for a process that was
 * killed and has its answer: then it is closed when that is done, or by the next daemon.
 *
 * closing_done(), closing_done_of() - a waiter, or a request, that used these descriptors is done: close what was left to it.
 */
void closing_close(int fd);
void closing_done(int fd);
void closing_done_of(const struct fuse_in_header *header);

#endif
