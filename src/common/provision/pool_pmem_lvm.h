/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool_pmem_lvm.h - a pool of type pmem in mode lvm: namespaces named "flexgraft" are the disks of one volume group,
 * the region's, and each volume is a logical volume of it.
 *
 * The group is made, and grows to "maxPercent" of the region, when a volume is made. Parameters: "usage", as in mode
 * direct. Other namespaces of the region, and other volume groups, are left alone.
 */
#ifndef FLEXGRAFT_PROVISION_POOL_PMEM_LVM_H
#define FLEXGRAFT_PROVISION_POOL_PMEM_LVM_H

#include "provision/pool_kind.h"

const struct pool_kind *pool_pmem_lvm(void);

#endif
