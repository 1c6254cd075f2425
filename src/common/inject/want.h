/* SPDX-License-Identifier: Apache-2.0 */
/*
 * want.h - "persist": what is wanted in a container whenever it runs (state/wish), written down with its mount and
 * taken back with it.
 */
#ifndef FLEXGRAFT_INJECT_WANT_H
#define FLEXGRAFT_INJECT_WANT_H

#include "base/error.h"
#include "inject/injection.h"
#include "inject/removal.h"
#include "inject/request/request.h"
#include "state/wish.h"

/* Step WANT of inject/plan.h: with "persist" the mount is wanted, with "persist": false it is not. */
int want_set(struct injection *injection, struct error *error);

/* want_undo() - what was wanted before is wanted again: a failed call leaves no wish. */
int want_undo(struct injection *injection, struct error *error);

/*
 * Step UNWANT: nothing is wanted any more where the removal's mount is, or was to be. want_give_back() - the removal
 * failed, and the mount is there: it is wanted again.
 */
int want_take(struct removal *removal, struct error *error);
int want_give_back(struct removal *removal, struct error *error);

#endif
