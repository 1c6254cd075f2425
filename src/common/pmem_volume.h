/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pmem_volume.h - a volume that is a namespace of persistent memory: it has its device all the time.
 *
 * Options: pool and volumeID; without them, what volume-create made or adopted under the volume's name.
 */
#ifndef FLEXGRAFT_PMEM_VOLUME_H
#define FLEXGRAFT_PMEM_VOLUME_H

#include "volume_call.h"

extern const struct volume_kind pmem_volume;

#endif
