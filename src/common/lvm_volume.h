/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lvm_volume.h - a volume that is a logical volume: activated when it is attached, deactivated when it is detached.
 *
 * Options: volumegroup and volumeID, as Kubernetes' example driver has them; or pool, one of type lvm; without either,
 * what volume-create made or adopted under the volume's name. It is never made here.
 */
#ifndef FLEXGRAFT_LVM_VOLUME_H
#define FLEXGRAFT_LVM_VOLUME_H

#include "volume_call.h"

extern const struct volume_kind lvm_volume;

#endif
