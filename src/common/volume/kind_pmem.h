/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kind_pmem.h - a volume that is a namespace of persistent memory: it has its device all the time.
 *
 * Options: pool and volumeID; without them, what volume-create made or adopted under the volume's name.
 */
#ifndef FLEXGRAFT_VOLUME_KIND_PMEM_H
#define FLEXGRAFT_VOLUME_KIND_PMEM_H

#include "volume/call.h"

extern const struct volume_kind kind_pmem;

#endif
