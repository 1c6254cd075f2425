/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.h - a request -> what must hold, in order, each step with its undo. Plain data: no descriptor, no system call,
 * no privilege; printed as it is by "dryRun". inject/step.h has the steps.
 */
#ifndef FLEXGRAFT_INJECT_PLAN_H
#define FLEXGRAFT_INJECT_PLAN_H

#include <stddef.h>

#include "inject/request.h"
#include "inject/step.h"

struct plan {
        const struct request *request;
        enum step steps[16];
        size_t count;
};

/* plan_make() - the steps of a request; never fails. The plan borrows the request. */
void plan_make(struct plan *ret_plan, const struct request *request);

/*
 * plan_make_batch() - the plans of a batch's entries, in their order: one per entry, in ret_plans. A target within
 * another's is looked at only once that one is placed.
 */
void plan_make_batch(struct plan *ret_plans, const struct request *batch);

#endif
