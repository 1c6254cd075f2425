/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idempotency.h - a request that its caller gave an id: asked for again, it is the same operation, with the same answer,
 * whatever became of the volume since. Remembered for a week, in "operations" of the state directory.
 */
#ifndef FLEXGRAFT_PROVISION_IDEMPOTENCY_H
#define FLEXGRAFT_PROVISION_IDEMPOTENCY_H

#include <jansson.h>

#include "base/error.h"

/*
 * idempotency_recall() - the answer that was given. Gives: ret_reply, owned by the caller; NULL: none yet.
 * Errors: EEXIST another request had this id.
 */
int idempotency_recall(const char *state_dir, const char *id, const json_t *request, json_t **ret_reply,
                       struct error *error);

/* idempotency_remember() - the answer that is about to be given; it survives a power cut. */
int idempotency_remember(const char *state_dir, const char *id, const json_t *request, const json_t *reply,
                         struct error *error);

#endif
