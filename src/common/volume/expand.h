/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expand.h - expandvolume and expandfs: grow a volume's image or device, and the mounted filesystem on it.
 */
#ifndef FLEXGRAFT_VOLUME_EXPAND_H
#define FLEXGRAFT_VOLUME_EXPAND_H

#include "volume/call.h"

/* volume_expand() - grow the device; it never shrinks. A volume that is on another node is grown there, by expandfs. */
int volume_expand(struct volume_call *call, struct error *error);

/* volume_expand_fs() - grow the device, unless it is large enough, and the filesystem mounted on request->dir. */
int volume_expand_fs(struct volume_call *call, struct error *error);

#endif
