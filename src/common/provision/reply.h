/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reply.h - why a volume tool failed.
 */
#ifndef FLEXGRAFT_PROVISION_REPLY_H
#define FLEXGRAFT_PROVISION_REPLY_H

#include "base/error.h"
#include "provision/request.h"

/* provision_reply_failure() - the reply. Returns the program's exit status. */
int provision_reply_failure(const struct provision_request *request, const struct error *error);

/* provision_reply_complaint() - the same on standard error, where standard output is not for JSON. */
int provision_reply_complaint(const struct provision_request *request, const struct error *error);

#endif
