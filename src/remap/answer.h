/* SPDX-License-Identifier: Apache-2.0 */
/*
 * answer.h - answers on their way to the kernel: kept until the kernel has them, with what libfuse does not know.
 */
#ifndef FLEXGRAFT_REMAP_ANSWER_H
#define FLEXGRAFT_REMAP_ANSWER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

/* answer_send() - libfuse's writev(). */
ssize_t answer_send(int fd, struct iovec *parts, int count, void *ignored);

/* answer_error() - without libfuse. */
void answer_error(uint64_t unique, int errnum);

/* answer_withhold() - whether this thread's answers go nowhere: FUSE_INIT is said again to a new session. */
void answer_withhold(bool withhold);

#endif
