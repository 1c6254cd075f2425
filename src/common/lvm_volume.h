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

/*
 * lvm_volume_begin() - start who runs lvm, where the words of the call, or the volume's record, speak of it; before
 * privileges_drop(): of the record no more is asked than whether a word is in it.
 */
int lvm_volume_begin(int argc, char **argv, struct error *error);

/* lvm_volume_begin_with_tools() - the same, and who runs the other commands (tool.h). */
int lvm_volume_begin_with_tools(int argc, char **argv, struct error *error);

#endif
