/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idempotency.h - requests with an "operation" id: the same request again gets the same reply, whatever happened to the
 * volume since. Kept for a week, in "operations" of the state directory.
 */
#ifndef FLEXGRAFT_PROVISION_IDEMPOTENCY_H
#define FLEXGRAFT_PROVISION_IDEMPOTENCY_H

#include <jansson.h>

#include "base/error.h"

/*
 * idempotency_recall() - the reply that was given. Gives: ret_reply, owned by the caller; NULL: none yet.
 * Errors: EEXIST another request has used this id.
 */
int idempotency_recall(const char *state_dir, const char *id, const json_t *request, json_t **ret_reply,
                       struct error *error);

/* idempotency_remember() - keep the reply that is about to be given; it survives a power failure. */
int idempotency_remember(const char *state_dir, const char *id, const json_t *request, const json_t *reply,
                         struct error *error);

#endif
