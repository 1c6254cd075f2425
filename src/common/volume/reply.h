/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reply.h - the answer of a verb, as kubelet expects it.
 *
 * Run from no driver's directory, as csi-driver runs it, a failure has the "error" of the other programs, too.
 *
 * A failure exits 0, too: kubelet logs the whole command line, with secrets, of a driver that exits otherwise.
 */
#ifndef FLEXGRAFT_VOLUME_REPLY_H
#define FLEXGRAFT_VOLUME_REPLY_H

#include "base/error.h"
#include "base/key.h"
#include "volume/call.h"
#include "volume/request.h"

/* What volume_reply_success() may say, and init; its programs are a bit for each verb (enum verb). */
extern const struct key_table volume_success_keys;

/* Each prints one line, closes standard input, output and error, and returns the program's exit status. */
int volume_reply_init(const char *driver);
int volume_reply_success(const struct volume_call *call);
int volume_reply_failure(const struct volume_request *request, const struct error *error);

#endif
