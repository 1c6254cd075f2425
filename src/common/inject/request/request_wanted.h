/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request_wanted.h - what is wanted in a container whenever it runs (state/wish), as entries of a batch.
 */
#ifndef FLEXGRAFT_INJECT_REQUEST_REQUEST_WANTED_H
#define FLEXGRAFT_INJECT_REQUEST_REQUEST_WANTED_H

#include "base/error.h"
#include "inject/request/request.h"
#include "state/wish.h"

/*
 * request_wanted_add() - what is wanted in a container, as entries of a batch, to be put into this process's; wanted
 * must outlive the request. known: its members but "created" say which process it is.
 */
int request_wanted_add(struct request *request, const struct wish_record *wanted,
                       const struct container_reference *known, struct error *error);

/*
 * request_wanted_add_all() - for a batch with "wanted": find its container, and add what is wanted in it; the entries
 * name the process that was found, so that they are of no other one.
 */
int request_wanted_add_all(struct request *request, struct error *error);

#endif
