/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request_rules.h - what can be said of a mount's request only once every key is known, and whether a policy allows it.
 */
#ifndef FLEXGRAFT_INJECT_REQUEST_REQUEST_RULES_H
#define FLEXGRAFT_INJECT_REQUEST_REQUEST_RULES_H

#include "base/error.h"
#include "inject/request/request.h"
#include "state/policy.h"

/*
 * request_rules_apply() - whether it is whole and fits together; also fills in what follows from it, the defaults
 * among that. Errors: OPERATION_PARSE, naming the key.
 */
int request_rules_apply(struct request *request, struct error *error);

/*
 * request_policy_check() - whether a mount of this sort, with these options, is allowed. Its sources are not looked at.
 * Errors: EACCES, naming the key of policy.json that would allow it.
 */
int request_policy_check(const struct policy *policy, const struct request *request, struct error *error);

#endif
