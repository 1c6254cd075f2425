/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block_source.h - a filesystem on a block device of the node as the source of a mount.
 */
#ifndef FLEXGRAFT_BLOCK_SOURCE_H
#define FLEXGRAFT_BLOCK_SOURCE_H

#include "injection.h"

extern const struct source_kind block_source;

#endif
