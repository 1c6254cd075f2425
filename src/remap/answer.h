/* SPDX-License-Identifier: Apache-2.0 */
/*
 * answer.h - send answers to the kernel: each is recorded first, for the next daemon, and some get fields that libfuse
 * 3.14 does not know.
 */
#ifndef FLEXGRAFT_REMAP_ANSWER_H
#define FLEXGRAFT_REMAP_ANSWER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

/* answer_send() - the writev() of libfuse's session. */
ssize_t answer_send(int fd, struct iovec *parts, int count, void *ignored);

/* answer_error() - answer a request without libfuse. */
void answer_error(uint64_t unique, int errnum);

/*
 * answer_invalidate() - have the kernel drop the attributes of a node, and its pages, which are written back before. With
 * pages, it waits until requests that use them are answered.
 */
void answer_invalidate(uint64_t node, bool pages);

/*
 * answer_invalidate_name() - have the kernel forget a name in a directory, and what nobody uses of its file, or below it. It
 * waits for those that use the directory: the thread must not be one that answers.
 */
void answer_invalidate_name(uint64_t directory, const char *name);

/* answer_withhold() - whether to drop this thread's answers: the kernel has the answer to FUSE_INIT already. */
void answer_withhold(bool withhold);

#endif
