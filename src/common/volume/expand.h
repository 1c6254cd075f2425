/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expand.h - a volume made larger: its image or device, and the filesystem on it while it is in use.
 */
#ifndef FLEXGRAFT_VOLUME_EXPAND_H
#define FLEXGRAFT_VOLUME_EXPAND_H

#include "volume/call.h"

/* volume_expand() - expandvolume: the device. Never smaller. Where the volume is not on this node, expandfs does it. */
int volume_expand(struct volume_call *call, struct error *error);

/* volume_expand_fs() - expandfs: the device, if that was not done, and the filesystem mounted on request->dir. */
int volume_expand_fs(struct volume_call *call, struct error *error);

#endif
