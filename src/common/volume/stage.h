/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage.h - mountdevice: a volume's filesystem, once for this node, straight on kubelet's directory.
 *
 * unmountdevice is volume_take_off().
 */
#ifndef FLEXGRAFT_VOLUME_STAGE_H
#define FLEXGRAFT_VOLUME_STAGE_H

#include "volume/call.h"

/*
 * volume_stage() - attach it if that was not done; make a filesystem where the device is blank, repair the one that is
 * there; mount it. A kind without a device has nothing to do here: kubelet then unmounts nothing, either.
 */
int volume_stage(struct volume_call *call, struct error *error);

/* volume_stage_attached() - the same, of a call that is open, with its kind. */
int volume_stage_attached(struct volume_call *call, struct error *error);

#endif
