/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kind_lvm.h - a volume that is a logical volume: activated when it is attached, deactivated when it is detached.
 *
 * Options: volumegroup and volumeID, as Kubernetes' example driver has them; or pool, one of type lvm; without either,
 * what volume-create made or adopted under the volume's name. It is never made here.
 */
#ifndef FLEXGRAFT_VOLUME_KIND_LVM_H
#define FLEXGRAFT_VOLUME_KIND_LVM_H

#include "volume/call.h"

extern const struct volume_kind kind_lvm;

#endif
