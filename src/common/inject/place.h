/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place.h - the visible part of an injection: the record, the mount point, the mount; and undoing it.
 */
#ifndef FLEXGRAFT_INJECT_PLACE_H
#define FLEXGRAFT_INJECT_PLACE_H

#include "base/error.h"
#include "inject/injection.h"

/* Steps RECORD, MAKE_TARGET, ALLOW_DEVICE, PLACE and CONFIRM of inject/plan.h. */
int place_record(struct injection *injection, struct error *error);
int place_make_target(struct injection *injection, struct error *error);
int place_allow_device(struct injection *injection, struct error *error);
int place_mount(struct injection *injection, struct error *error);
int place_confirm(struct injection *injection, struct error *error);

/* place_undo() - undo what was done, in reverse. Runs in a worker in the node's namespaces. */
int place_undo(struct injection *injection, struct error *error);

#endif
