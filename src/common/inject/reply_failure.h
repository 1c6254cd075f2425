/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reply_failure.h - a struct error -> the reply that says what was tried, and why it failed; and the hints.
 */
#ifndef FLEXGRAFT_INJECT_REPLY_FAILURE_H
#define FLEXGRAFT_INJECT_REPLY_FAILURE_H

#include "base/error.h"
#include "base/failure.h"
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

/*
 * What to do about failures of mounts in containers, whatever their kind (inject/hints.c); what only one kind has, is in its
 * row. With those of the folders below; for failure_hint().
 */
extern const struct hint *const inject_all_hints[];

#endif
