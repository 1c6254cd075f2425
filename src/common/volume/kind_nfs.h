/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kind_nfs.h - an NFS export as a volume: mounted for each pod, from the node's network; nothing is attached.
 */
#ifndef FLEXGRAFT_VOLUME_KIND_NFS_H
#define FLEXGRAFT_VOLUME_KIND_NFS_H

#include "volume/call.h"

extern const struct volume_kind kind_nfs;

#endif
