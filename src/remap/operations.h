/* SPDX-License-Identifier: Apache-2.0 */
/*
 * operations.h - each FUSE request as the system calls that it means on the source.
 */
#ifndef FLEXGRAFT_TRANSLATOR_OPERATIONS_H
#define FLEXGRAFT_TRANSLATOR_OPERATIONS_H

#include "fuse_library.h"

extern const struct fuse_lowlevel_ops operations;

#endif
