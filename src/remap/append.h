/* SPDX-License-Identifier: Apache-2.0 */
/*
 * append.h - writes at the end of a file, wherever that is by then: each is done once, also when the daemon is killed.
 */
#ifndef FLEXGRAFT_REMAP_APPEND_H
#define FLEXGRAFT_REMAP_APPEND_H

#include <stddef.h>

#include "fuse_library.h"

/* append() - to an open file, as who this thread is; and answer the request. */
void append(fuse_req_t request, int fd, const char *data, size_t size);

#endif
