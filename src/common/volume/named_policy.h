/* SPDX-License-Identifier: Apache-2.0 */
/*
 * named_policy.h - which volumes by name policy.json lets annotations of containers ask for: "volumeNames" and "pools".
 */
#ifndef FLEXGRAFT_VOLUME_NAMED_POLICY_H
#define FLEXGRAFT_VOLUME_NAMED_POLICY_H

#include <stdbool.h>

#include "base/error.h"
#include "state/policy.h"

/*
 * named_policy_check() - before anything is held: the name, the pool of the volume if there is one, and with create the
 * pool that a missing one is made in, which the request must name. Errors: EACCES.
 */
int named_policy_check(const struct policy *policy, const char *name, bool create, const char *create_pool,
                       struct error *error);

/* named_policy_check_pool() - again, of the volume whose lock is held: it may have been made anew. Errors: EACCES. */
int named_policy_check_pool(const struct policy *policy, const char *pool, struct error *error);

#endif
