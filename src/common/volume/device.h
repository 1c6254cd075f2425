/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device.h - a volume's device on this node: waited for, and checked that no other volume has it.
 */
#ifndef FLEXGRAFT_VOLUME_DEVICE_H
#define FLEXGRAFT_VOLUME_DEVICE_H

#include "volume/call.h"

/*
 * volume_device_wait_for() - wait for a device that appears later: a disk just attached to the machine, a link that
 * udev makes. Errors: ENOENT or ENXIO after the timeout.
 */
int volume_device_wait_for(const char *source, unsigned timeout_seconds, struct block_device *ret_device,
                           struct error *error);

/* volume_device_check_alone() - check that no other volume and no other process uses a device that will be written. Errors:
 * EBUSY. */
int volume_device_check_alone(struct volume_call *call, const struct block_device *device, struct error *error);

#endif
