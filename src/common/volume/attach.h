/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attach.h - a volume's device on this node: ensure that it is there, say whether it is, let it go.
 *
 * Attach may be asked for another node, by whoever runs the cluster: then nothing is changed here, and the device is
 * what it will be called there; waitforattach, on the node, does the work.
 */
#ifndef FLEXGRAFT_VOLUME_ATTACH_H
#define FLEXGRAFT_VOLUME_ATTACH_H

#include "volume/call.h"

int volume_attach(struct volume_call *call, struct error *error);
int volume_wait_for_attach(struct volume_call *call, struct error *error);
int volume_is_attached(struct volume_call *call, struct error *error);
int volume_detach(struct volume_call *call, struct error *error);

#endif
