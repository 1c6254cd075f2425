/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steps.h - the steps of inject/plan.h that inject/apply takes after the source was opened, each group in the file of its
 * first word. Those before are in inject/injection.h, those of a removal in inject/removal.h.
 */
#ifndef FLEXGRAFT_INJECT_STEPS_H
#define FLEXGRAFT_INJECT_STEPS_H

#include "base/error.h"
#include "inject/injection.h"
#include "inject/removal.h"
#include "inject/request/request.h"
#include "state/wish.h"

/* ---- the target as it is now: nothing is mounted there, a mount of flexgraft's, or another */

/*
 * look_at_target() - find the target; decide whether the mount is there already, or replaces one. Steps LOOK and
 * LOOK_AGAIN.
 */
int look_at_target(struct injection *injection, struct error *error);

/* ---- the detached mount: made as its kind does it, its owners as the container sees them */

/* Steps MAKE and SET_ATTRIBUTES of inject/plan.h; where the kernel cannot map owners, the second makes the mount again. */
int mounting_make(struct injection *injection, struct error *error);
int mounting_set_attributes(struct injection *injection, struct error *error);

/* ---- the visible part of an injection: the record, the mount point, the mount; and undoing it */

/* Steps RECORD, MAKE_TARGET, ALLOW_DEVICE, PLACE and CONFIRM of inject/plan.h. */
int place_record(struct injection *injection, struct error *error);
int place_make_target(struct injection *injection, struct error *error);
int place_allow_device(struct injection *injection, struct error *error);
int place_mount(struct injection *injection, struct error *error);
int place_confirm(struct injection *injection, struct error *error);

/* place_undo() - undo what was done, in reverse. Runs in a worker in the node's namespaces. */
int place_undo(struct injection *injection, struct error *error);

/*
 * ---- "persist": what is wanted in a container whenever it runs (state/wish), written down with its mount and
 * taken back with it.
 */

/* Step WANT of inject/plan.h: with "persist" the mount is wanted, with "persist": false it is not. */
int want_set(struct injection *injection, struct error *error);

/*
 * want_check() - of a mount that is made for a wish: nobody took that back since it was read. Holds the wish's lock until
 * the mount has its record. Errors: EAGAIN it was taken back.
 */
int want_check(struct injection *injection, struct error *error);

/* want_changed() - whether the call may have changed what is wanted. */
bool want_changed(const struct injection *injection);

/* want_undo() - what was wanted before is wanted again: a failed call leaves no wish. */
int want_undo(struct injection *injection, struct error *error);

/*
 * Step UNWANT: nothing is wanted any more where the removal's mount is, or was to be. want_give_back() - the removal
 * failed, and the mount is there: it is wanted again.
 */
int want_take(struct removal *removal, struct error *error);
int want_give_back(struct removal *removal, struct error *error);

/*
 * want_has_called() - whether a mount is wanted on the removal's target in a container that is called as the request
 * says, and that no runtime knows: 1, 0 or negative errno.
 */
int want_has_called(struct removal *removal, struct error *error);

#endif
