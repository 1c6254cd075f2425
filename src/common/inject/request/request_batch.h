/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request_batch.h - the mounts of a batch: each a request of its own, or an entry of an OCI "mounts" array as it is.
 */
#ifndef FLEXGRAFT_INJECT_REQUEST_REQUEST_BATCH_H
#define FLEXGRAFT_INJECT_REQUEST_REQUEST_BATCH_H

#include <jansson.h>

#include "base/error.h"
#include "inject/request/request.h"
#include "state/wish.h"

/*
 * request_batch_add() - more entries for a request of the kind REQUEST_MOUNT_BATCH, from an array or a single object.
 *
 * Takes:   key, what they are called in errors; value, borrowed: it must live as long as the request.
 * Errors:  OPERATION_PARSE, naming key, entry and the entry's key.
 */
int request_batch_add(struct request *request, const char *key, const json_t *value, struct error *error);

/*
 * request_batch_finish() - once all entries are there: what each takes from the batch, what it lacks, and what no two
 * may have in common. Puts parents before children.
 */
int request_batch_finish(struct request *request, struct error *error);

/* ---- what is wanted in a container whenever it runs (state/wish), as entries of a batch */

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
