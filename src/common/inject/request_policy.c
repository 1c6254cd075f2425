/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/request_policy.h"

#include <errno.h>
#include <jansson.h>

int request_policy_check(const struct policy *policy, const struct request *request, struct error *error)
{
        const char *kind = request_kind_word(request->kind);

        if (policy->section == NULL)
                return fail_because(error, EACCES, "check policy", kind,
                                    "%s does not allow it: without it, or without this section in it, nothing is",
                                    policy->path);
        if (!policy_lists(policy, "kinds", kind))
                return policy_forbid(policy, kind, "kinds", error);
        if (request->raw && !json_is_true(json_object_get(policy->section, "raw")))
                return policy_forbid(policy, "true", "raw", error);
        /* a superblock that the container owns gives its root more than files: whoever wants that says so as root */
        if (request->ids == IDS_USERNS || request->ids == IDS_REMAP)
                return fail_because(error, EACCES, "check policy", "ids", "%s cannot allow \"ids\" of this sort",
                                    policy->path);
        if (request->replace) /* what is there may be root's */
                return fail_because(error, EACCES, "check policy", "replace", "%s cannot allow \"replace\"",
                                    policy->path);
        if (request->kind == REQUEST_MOUNT_CONTAINER &&
            (request->from.id == NULL ||
             (!policy_lists(policy, "containers", request->from.id) && !policy_lists(policy, "containers", "*"))))
                return policy_forbid(policy,
                                     request->from.id != NULL ? request->from.id : "a container not named by its id",
                                     "containers", error);
        return policy_check_options(policy, &request->options, kind, request->raw, error);
}
