/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reply_failure.h - a struct error -> the reply that says what was tried, and why it failed.
 */
#ifndef FLEXGRAFT_INJECT_REPLY_FAILURE_H
#define FLEXGRAFT_INJECT_REPLY_FAILURE_H

#include "base/error.h"
#include "inject/apply.h"
#include "inject/request/request.h"

/* Each prints one line and returns the program's exit status. */

/* inject_reply_failure() - the error in words, with what was tried (request may be empty) and a hint. */
int inject_reply_failure(const struct request *request, const struct error *error);

/*
 * inject_reply_failed() - the same of a plan that was applied. failed: of the mount, or of one entry of a batch; NULL: no
 * single one failed.
 */
int inject_reply_failed(const struct request *request, const struct outcome *failed, const struct error *error);

/*
 * inject_reply_complaint() - a failure for people and logs, on standard error, where standard output is not ours. failed:
 * as above.
 */
int inject_reply_complaint(const char *program, const struct request *request, const struct outcome *failed,
                           const struct error *error);

/* inject_reply_usage() - the same for wrong arguments. */
int inject_reply_usage(const char *program, const char *complaint);

#endif
