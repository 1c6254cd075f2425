/* SPDX-License-Identifier: Apache-2.0 */
/*
 * operations.h - the table of FUSE operations, each a function that makes the corresponding system calls on the source.
 */
#ifndef FLEXGRAFT_REMAP_OPERATIONS_H
#define FLEXGRAFT_REMAP_OPERATIONS_H

#include "fuse_library.h"

extern const struct fuse_lowlevel_ops operations;

#endif
