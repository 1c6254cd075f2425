/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request_rules.h - what can be said of a mount's request only once every key is known.
 */
#ifndef FLEXGRAFT_INJECT_REQUEST_REQUEST_RULES_H
#define FLEXGRAFT_INJECT_REQUEST_REQUEST_RULES_H

#include "base/error.h"
#include "inject/request/request.h"

/*
 * request_rules_apply() - whether it is whole and fits together; also fills in what follows from it, the defaults
 * among that. Errors: OPERATION_PARSE, naming the key.
 */
int request_rules_apply(struct request *request, struct error *error);

#endif
