/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_block.h - a filesystem on a block device of the node as the source of a mount.
 */
#ifndef FLEXGRAFT_INJECT_SOURCE_BLOCK_H
#define FLEXGRAFT_INJECT_SOURCE_BLOCK_H

#include "inject/injection.h"

extern const struct source_kind source_block;

#endif
