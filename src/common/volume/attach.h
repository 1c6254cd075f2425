/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attach.h - a volume's device on this node: attach, waitforattach, isattached, detach.
 *
 * The controller may call attach for another node. Then nothing is changed here, and the answer is the path that the
 * device will have there; waitforattach, on that node, attaches it.
 */
#ifndef FLEXGRAFT_VOLUME_ATTACH_H
#define FLEXGRAFT_VOLUME_ATTACH_H

#include "volume/call.h"

int volume_attach(struct volume_call *call, struct error *error);
int volume_wait_for_attach(struct volume_call *call, struct error *error);
int volume_is_attached(struct volume_call *call, struct error *error);
int volume_detach(struct volume_call *call, struct error *error);

/* volume_detach_recorded() - detach, for a call whose record is open and on disk, and whose kind is known. */
int volume_detach_recorded(struct volume_call *call, struct error *error);

#endif
