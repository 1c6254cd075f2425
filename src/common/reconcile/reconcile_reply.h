/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reconcile_reply.h - the request of volume-reconcile, and its reply: what was done, and what was left as it is.
 */
#ifndef FLEXGRAFT_RECONCILE_RECONCILE_REPLY_H
#define FLEXGRAFT_RECONCILE_RECONCILE_REPLY_H

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"
#include "base/schema.h"

struct reconcile {
        bool dry_run;     /* only say what would be done */
        json_t *actions;  /* array of {"action", "subject"}; owned */
        json_t *problems; /* array of strings; owned */
};

/* What volume-reconcile takes and replies. */
extern const struct schema reconcile_schema;

/* reconcile_parse() - the request: nothing, {} or {"dryRun": true}; - reads it from standard input. */
int reconcile_parse(struct reconcile *ret_reconcile, int argc, char **argv, struct error *error);

/* reconcile_did() - an action for the reply and the log, done or, on a dry run, only meant. */
void reconcile_did(struct reconcile *reconcile, const char *action, const char *subject);

/* reconcile_problem() - something that was left as it is. */
void reconcile_problem(struct reconcile *reconcile, const char *subject, const struct error *error);

/* reconcile_status() - print what was done. error: NULL, or why nothing was. Returns the exit status. */
int reconcile_status(const struct reconcile *reconcile, const struct error *error);

#endif
