/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage.h - mountdevice: mount a volume's filesystem once for this node, on kubelet's global directory.
 *
 * unmountdevice is volume_unstage() (volume/unpublish.h).
 */
#ifndef FLEXGRAFT_VOLUME_STAGE_H
#define FLEXGRAFT_VOLUME_STAGE_H

#include "volume/call.h"

/*
 * volume_stage() - attach the volume where it is not yet attached; make a filesystem on a blank device, or repair the one
 * that it has; mount it. For a kind without a device it does nothing.
 */
int volume_stage(struct volume_call *call, struct error *error);

/* volume_stage_attached() - the same, for a call whose record is open and whose kind is known. */
int volume_stage_attached(struct volume_call *call, struct error *error);

#endif
