/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request_policy.h - whether the node's policy allows a request.
 */
#ifndef FLEXGRAFT_INJECT_REQUEST_REQUEST_POLICY_H
#define FLEXGRAFT_INJECT_REQUEST_REQUEST_POLICY_H

#include "base/error.h"
#include "inject/request/request.h"
#include "state/policy.h"

/*
 * request_policy_check() - whether a mount of this sort, with these options, is allowed. Its sources are not looked at.
 * Errors: EACCES, naming the key of policy.json that would allow it.
 */
int request_policy_check(const struct policy *policy, const struct request *request, struct error *error);

#endif
