/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nfs_volume.h - an NFS export as a volume: mounted for each pod, from the node's network; nothing is attached.
 */
#ifndef FLEXGRAFT_NFS_VOLUME_H
#define FLEXGRAFT_NFS_VOLUME_H

#include "volume_call.h"

extern const struct volume_kind nfs_volume;

#endif
