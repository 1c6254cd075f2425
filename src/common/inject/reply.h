/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reply.h - a result or a struct error -> the one JSON object on stdout, and the exit status that goes with it.
 */
#ifndef FLEXGRAFT_INJECT_REPLY_H
#define FLEXGRAFT_INJECT_REPLY_H

#include "base/error.h"
#include "base/reply.h"
#include "inject/apply.h"
#include "inject/listing.h"
#include "inject/plan.h"
#include "inject/request.h"

/* Each prints one line and returns the program's exit status; EXIT_FAILED also when the line cannot be written. */
int inject_reply_mounted(const struct outcome *outcome);
int inject_reply_removed(const struct outcome *outcome);
int inject_reply_listed(const struct listing *listing);
int inject_reply_planned(const struct plan *plan, const struct outcome *outcome);
int inject_reply_mounted_all(const struct outcome *outcomes, size_t count);
int inject_reply_planned_all(const struct plan *plans, const struct outcome *outcomes, size_t count);

/* inject_reply_failure() - the error in words, with what was tried (request may be empty) and a hint. */
int inject_reply_failure(const struct request *request, const struct error *error);

/* inject_reply_failure_in() - the same, of one entry of a batch; of the whole where entry is NULL. */
int inject_reply_failure_in(const struct request *request, const struct request *entry, const struct error *error);

/* inject_reply_complaint() - a failure for people and logs, on standard error, where standard output is not ours. */
int inject_reply_complaint(const char *program, const struct request *request, const struct error *error);

/* inject_reply_usage() - the same for wrong arguments. */
int inject_reply_usage(const char *program, const char *complaint);

#endif
