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
int status_mounted(const struct outcome *outcome);
int status_removed(const struct outcome *outcome);
int status_listed(const struct listing *listing);
int status_table(const struct listing *listing); /* many lines, for people */
int status_planned(const struct plan *plan, const struct outcome *outcome);
int status_mounted_all(const struct outcome *outcomes, size_t count);
int status_planned_all(const struct plan *plans, const struct outcome *outcomes, size_t count);

/* status_failure() - the error in words, with what was tried (request may be empty) and a hint. */
int status_failure(const struct request *request, const struct error *error);

/* status_failure_in() - the same, of one entry of a batch; of the whole where entry is NULL. */
int status_failure_in(const struct request *request, const struct request *entry, const struct error *error);

/* status_complaint() - a failure for people and logs, on standard error, where standard output is not ours. */
int status_complaint(const char *program, const struct request *request, const struct error *error);

/* status_usage() - the same for a call that is no call. */
int status_usage(const char *program, const char *complaint);

#endif
