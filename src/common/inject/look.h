/* SPDX-License-Identifier: Apache-2.0 */
/*
 * look.h - what is at the target now: nothing, our mount, or somebody else's.
 */
#ifndef FLEXGRAFT_INJECT_LOOK_H
#define FLEXGRAFT_INJECT_LOOK_H

#include "base/error.h"
#include "inject/injection.h"

/* look_at_target() - the steps LOOK and LOOK_AGAIN of inject/plan.h. */
int look_at_target(struct injection *injection, struct error *error);

#endif
