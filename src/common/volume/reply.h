/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reply.h - a verb's answer, in kubelet's words.
 *
 * A failure exits 0: when a driver exits otherwise kubelet logs its whole command line, secrets included.
 */
#ifndef FLEXGRAFT_VOLUME_REPLY_H
#define FLEXGRAFT_VOLUME_REPLY_H

#include "base/error.h"
#include "volume/call.h"
#include "volume/request.h"

/* Each prints one line, lets go of standard input, output and error, and returns the program's exit status. */
int volume_reply_init(const char *driver);
int volume_reply_success(const struct volume_call *call);
int volume_reply_failure(const struct volume_request *request, const struct error *error);

#endif
