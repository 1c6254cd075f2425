/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block_volume.h - a volume that is a block device of the node.
 *
 * Options: source (or device): a path in /dev, or UUID=, LABEL=, PARTUUID=, PARTLABEL=.
 */
#ifndef FLEXGRAFT_BLOCK_VOLUME_H
#define FLEXGRAFT_BLOCK_VOLUME_H

#include "volume_call.h"

extern const struct volume_kind block_volume;

#endif
