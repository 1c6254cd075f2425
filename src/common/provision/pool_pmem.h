/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool_pmem.h - a pool of namespaces of persistent memory, one per volume and named after it.
 *
 * Parameters: "usage" AppDirect (default: mode fsdax, what is mapped with DAX is the memory itself) or FileIO (mode
 * sector: no torn sectors, and no DAX).
 */
#ifndef FLEXGRAFT_PROVISION_POOL_PMEM_H
#define FLEXGRAFT_PROVISION_POOL_PMEM_H

#include "provision/pool_kind.h"

extern const struct pool_kind pool_pmem;

#endif
