/* SPDX-License-Identifier: Apache-2.0 */
/*
 * codes.h - errno values in gRPC's codes.
 */
#ifndef FLEXGRAFT_CSI_CODES_H
#define FLEXGRAFT_CSI_CODES_H

#include "call.h"

/*
 * csi_code() - what a failure with this errno value is to a caller, where the RPC's document says nothing else.
 *
 * kubelet takes CANCELLED, DEADLINE_EXCEEDED, UNAVAILABLE, RESOURCE_EXHAUSTED and ABORTED as "it may have happened", and
 * cleans up; after any other code it believes that nothing was done. What is not in the table is INTERNAL, so an RPC of
 * the node that could not undo what it did has to answer ABORTED itself.
 */
enum grpc_code csi_code(int error);

/* csi_errno() - the value of a name as replies have it ("EBUSY"); 0: there is no such name. */
int csi_errno(const char *name);

#endif
