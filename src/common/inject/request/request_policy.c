/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/request/request_policy.h"

#include <errno.h>

#include "inject/request/source.h"

int request_policy_check(const struct policy *policy, const struct request *request, struct error *error)
{
        const struct source_kind *kind = request->source_kind;
        int r;

        if (policy->section == NULL)
                return fail_because(error, EACCES, OPERATION_CHECK_POLICY, kind->word,
                                    "%s has no section \"annotations\": annotations may mount nothing", policy->path);
        if (!policy_lists(policy, "kinds", kind->word))
                return policy_forbid(policy, kind->word, "kinds", error);
        if (kind->check_policy != NULL && (r = kind->check_policy(request, policy, error)) < 0)
                return r;
        /* a superblock that the container owns gives its root more than files: whoever wants that says so as root */
        if (request->ids == IDS_USERNS || request->ids == IDS_REMAP)
                return fail_because(error, EACCES, OPERATION_CHECK_POLICY, "ids",
                                    "only root may ask for \"ids\" of this sort; %s cannot allow it", policy->path);
        if (request->replace) /* what is there may be root's */
                return fail_because(error, EACCES, OPERATION_CHECK_POLICY, "replace",
                                    "only root may ask for \"replace\"; %s cannot allow it", policy->path);
        return policy_check_options(policy, &request->options, kind->harmless_options,
                                    /* device_file= */ kind->allow != NULL, error);
}
