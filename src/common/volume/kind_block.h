/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kind_block.h - a volume that is a block device of the node.
 *
 * Options: source (or device): a path in /dev, or UUID=, LABEL=, PARTUUID=, PARTLABEL=.
 */
#ifndef FLEXGRAFT_VOLUME_KIND_BLOCK_H
#define FLEXGRAFT_VOLUME_KIND_BLOCK_H

#include "volume/call.h"

extern const struct volume_kind kind_block;

#endif
