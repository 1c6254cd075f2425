/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place.h - what others see of an injection: the record, the mount point, the mount in its place; and the way back.
 */
#ifndef FLEXGRAFT_INJECT_PLACE_H
#define FLEXGRAFT_INJECT_PLACE_H

#include "base/error.h"
#include "inject/injection.h"

/* One step of inject/plan.h each: RECORD, MAKE_TARGET, ALLOW_DEVICE, PLACE, CONFIRM. */
int place_record(struct injection *injection, struct error *error);
int place_make_target(struct injection *injection, struct error *error);
int place_allow_device(struct injection *injection, struct error *error);
int place_mount(struct injection *injection, struct error *error);
int place_confirm(struct injection *injection, struct error *error);

/* place_undo() - take back, in reverse, whatever was done; in a worker of its own, in the node's namespaces. */
int place_undo(struct injection *injection, struct error *error);

#endif
