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

/*
 * block_volume_wait_for() - a device that may be on its way: a disk just attached to the machine, a link that udev has
 * yet to make. Errors: ENOENT, ENXIO it did not appear.
 */
int block_volume_wait_for(const char *source, unsigned timeout_seconds, struct block_device *ret_device,
                          struct error *error);

/* block_volume_check_alone() - a device that is written has one volume, and nobody else. Errors: EBUSY. */
int block_volume_check_alone(struct volume_call *call, const struct block_device *device, struct error *error);

#endif
