/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.h - the steps of a request, in order. Plain data: no descriptor, no system call, no privilege; "dryRun" prints
 * it. The steps are in inject/step.h.
 */
#ifndef FLEXGRAFT_INJECT_PLAN_H
#define FLEXGRAFT_INJECT_PLAN_H

#include <stddef.h>

#include "inject/request/request.h"
#include "inject/step.h"

struct plan {
        const struct request *request;
        enum step steps[16];
        size_t count;
};

/* plan_make() - the steps of a request; never fails. The plan borrows the request. */
void plan_make(struct plan *ret_plan, const struct request *request);

/*
 * plan_make_batch() - one plan per entry of the batch, in its order. A target below another entry's target is looked up
 * only after that one is mounted.
 */
void plan_make_batch(struct plan *ret_plans, const struct request *batch);

#endif
