/* SPDX-License-Identifier: Apache-2.0 */
/*
 * want.h - "persist": what is wanted in a container whenever it runs (state/wish), written down with its mount and
 * taken back with it; and all of it, as a batch.
 */
#ifndef FLEXGRAFT_INJECT_WANT_H
#define FLEXGRAFT_INJECT_WANT_H

#include "base/error.h"
#include "inject/injection.h"
#include "inject/removal.h"
#include "inject/request.h"
#include "state/wish.h"

/* Step WANT of inject/step.h: with "persist" the mount is wanted, with "persist": false it is not. */
int want_set(struct injection *injection, struct error *error);

/* want_undo() - what was wanted before is wanted again: a failed call leaves no wish. */
int want_undo(struct injection *injection, struct error *error);

/*
 * Step UNWANT: nothing is wanted any more where the removal's mount is, or was to be. want_give_back() - the removal
 * failed, and the mount is there: it is wanted again.
 */
int want_take(struct removal *removal, struct error *error);
int want_give_back(struct removal *removal, struct error *error);

/*
 * want_add() - what is wanted in a container, as entries of a batch, to be put into this process's; wanted must outlive
 * the request. known: its members but "created" say which process it is.
 */
int want_add(struct request *request, const struct wish_record *wanted, const struct container_reference *known,
             struct error *error);

/*
 * want_add_all() - for a batch with "wanted": find its container, and add what is wanted in it; the entries name the
 * process that was found, so that they are of no other one.
 */
int want_add_all(struct request *request, struct error *error);

#endif
