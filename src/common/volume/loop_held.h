/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop_held.h - the image of a loop volume that is not attached, on a loop device for the length of this call.
 */
#ifndef FLEXGRAFT_VOLUME_LOOP_HELD_H
#define FLEXGRAFT_VOLUME_LOOP_HELD_H

#include "volume/call.h"

/*
 * loop_held_attach() - with the volume's lock. The record in memory then names the device; none is written, since the
 * device ends with the descriptor, however this process ends.
 *
 * Returns: a descriptor of the device, owned by the caller. Errors: EBUSY the image has another loop device.
 */
int loop_held_attach(struct volume_call *call, struct error *error);

#endif
