/* SPDX-License-Identifier: Apache-2.0 */
#include "provision/pool_kind.h"

#include <errno.h>

const struct pool_kind *const pool_kinds[] = { &pool_loop, &pool_lvm, &pool_pmem, &pool_pmem_lvm, NULL };

int pool_kind_check_parameters(const struct pool_kind *kind, const json_t *parameters, struct error *error)
{
        char complaint[FILE_KEY_COMPLAINT_SIZE];

        if (!file_keys_check(kind->parameters, parameters, /* strict= */ true, complaint))
                return fail_because(error, EINVAL, "check parameters", "parameters", "in a pool of type %s: %s",
                                    kind->type, complaint);
        return kind->check_parameters != NULL ? kind->check_parameters(parameters, error) : 0;
}
