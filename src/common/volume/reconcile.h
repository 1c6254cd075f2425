/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reconcile.h - after a crash or a reboot: make the node agree with the records, and the records with the node.
 *
 * What the kernel shows to be there, and to be ours, is kept; what no call of this boot will ever ask for again is
 * taken away. What runs is not disturbed: a volume whose lock is held is left to whoever holds it, and what is in use
 * is only reported.
 */
#ifndef FLEXGRAFT_VOLUME_RECONCILE_H
#define FLEXGRAFT_VOLUME_RECONCILE_H

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"

struct reconcile {
        bool dry_run;     /* only say what would be done */
        json_t *actions;  /* array of {"action", "subject"}; owned */
        json_t *problems; /* array of strings; owned */
};

/* reconcile_parse() - the request: nothing, {} or {"dryRun": true}; - reads it from standard input. */
int reconcile_parse(struct reconcile *ret_reconcile, int argc, char **argv, struct error *error);

/* reconcile_run() - do it all, in a worker; what fails on the way is a problem, and the rest goes on. */
int reconcile_run(struct reconcile *reconcile, struct error *error);

/* reconcile_status() - print what was done. error: NULL, or why nothing was. Returns the exit status. */
int reconcile_status(const struct reconcile *reconcile, const struct error *error);

#endif
