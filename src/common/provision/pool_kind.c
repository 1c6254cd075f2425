/* SPDX-License-Identifier: Apache-2.0 */
#include "provision/pool_kind.h"

const struct pool_kind *const pool_kinds[] = { &pool_loop, &pool_lvm, &pool_pmem, &pool_pmem_lvm, NULL };
