/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calls.h - the transport's side of a call (call.h): calls under way, one of each thing at a time.
 */
#ifndef FLEXGRAFT_CSI_CALLS_H
#define FLEXGRAFT_CSI_CALLS_H

#include <stddef.h>
#include <stdint.h>

#include "call.h"

#define CALLS_MAX 256 /* under way; one more is answered UNAVAILABLE */
#define CALLS_CONTROLLER_MAX                                                                                           \
        192 /* of them, the Controller's and Probe: the others are for calls that a pod waits for */

/*
 * What the transport is told, once, at the end of the call. message: a sentence, "" for GRPC_OK; body: the packed
 * response, from malloc(), given to the function; NULL: no code but GRPC_OK has one.
 */
typedef void call_answered(void *argument, enum grpc_code code, const char *message, uint8_t *body, size_t length);

/* calls_begin() - what call_options() answers from now on; borrowed. */
void calls_begin(const struct csi_options *options);

/* calls_under_way() - whether there are any. */
bool calls_under_way(void);

/*
 * call_begin() - unpack a request and begin its call. answered(argument, ...) may be called at once.
 *
 * Returns: the call, for call_forget(); NULL when it has been answered.
 */
struct call *call_begin(const struct rpc *rpc, const uint8_t *request, size_t length, call_answered *answered,
                        void *argument);

/*
 * call_forget() - nobody waits for the answer any more. What has begun is finished all the same; a call whose first
 * program still waits for others ends here, and does nothing. One that has only looked (volume-list) ends when it has.
 */
void call_forget(struct call *call);

#endif
