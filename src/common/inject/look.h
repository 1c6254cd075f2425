/* SPDX-License-Identifier: Apache-2.0 */
/*
 * look.h - the target as it is now: nothing is mounted there, a mount of flexgraft's, or another.
 */
#ifndef FLEXGRAFT_INJECT_LOOK_H
#define FLEXGRAFT_INJECT_LOOK_H

#include "base/error.h"
#include "inject/injection.h"

/*
 * look_at_target() - find the target; decide whether the mount is there already, or replaces one. Steps LOOK and
 * LOOK_AGAIN.
 */
int look_at_target(struct injection *injection, struct error *error);

#endif
