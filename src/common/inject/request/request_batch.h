/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request_batch.h - the mounts of a batch: each a request of its own, or an entry of an OCI "mounts" array as it is.
 */
#ifndef FLEXGRAFT_INJECT_REQUEST_REQUEST_BATCH_H
#define FLEXGRAFT_INJECT_REQUEST_REQUEST_BATCH_H

#include <jansson.h>

#include "base/error.h"
#include "inject/request/request.h"

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

#endif
