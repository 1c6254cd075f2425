/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool_lvm.h - a pool of logical volumes in a volume group. What is made carries the tag "flexgraft".
 *
 * Parameters, as lvcreate(8) has them: "type" linear (default), striped, mirror, raid1, raid5, raid6, raid10 or thin;
 * "stripes", "mirrors", "stripesize" (KiB); "thinpool", for thin: thin volumes together never get more than their thin
 * pool has.
 */
#ifndef FLEXGRAFT_PROVISION_POOL_LVM_H
#define FLEXGRAFT_PROVISION_POOL_LVM_H

#include "provision/pool_kind.h"

extern const struct pool_kind pool_lvm;

#endif
