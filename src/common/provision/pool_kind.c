/* SPDX-License-Identifier: Apache-2.0 */
#include "provision/pool_kind.h"

#include <string.h>

const struct pool_kind *pool_kind_of(const struct pool *pool)
{
        static const struct pool_kind *const kinds[] = { &pool_loop, &pool_lvm, &pool_pmem };

        size_t i = 0;

        if (pool->region[0] != '\0' && pool->volume_group[0] != '\0')
                return pool_pmem_lvm();
        while (i + 1 < sizeof kinds / sizeof kinds[0] && strcmp(kinds[i]->type, pool->type ?: "") != 0)
                i++; /* one of them it is: pool_find() knows no other types */
        return kinds[i];
}
