/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/by_name.h"

#include <errno.h>
#include <limits.h>

#include "pool/record.h"
#include "provision/provision.h"
#include "state/config.h"

int named_policy_check_pool(const struct policy *policy, const char *pool, struct error *error)
{
        return policy_matches(policy, "pools", pool) ? 0 : policy_forbid(policy, pool, "pools", error);
}

int named_policy_check(const struct policy *policy, const char *name, bool create, const char *create_pool,
                       struct error *error)
{
        cleanup_provision_record struct provision_record made = {};
        char state_dir[PATH_MAX];
        int r;

        if (!policy_matches(policy, "volumeNames", name))
                return policy_forbid(policy, name, "volumeNames", error);
        if (create && create_pool == NULL)
                return fail_because(error, EACCES, OPERATION_CHECK_POLICY, "create",
                                    "%s allows pools by their name: \"create\" must name its \"pool\"", policy->path);
        if ((create && (r = named_policy_check_pool(policy, create_pool, error)) < 0) ||
            (r = config_state_dir(state_dir, error)) < 0)
                return r;
        r = provision_record_find(state_dir, name, &made, error);
        if (r < 0)
                return r == -ENOENT ? 0 : r; /* volume_by_name_choose() says it */
        return named_policy_check_pool(policy, made.pool, error);
}
