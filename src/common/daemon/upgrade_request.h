/* SPDX-License-Identifier: Apache-2.0 */
/*
 * upgrade_request.h - remap-upgrade: its request, what it does, its replies.
 */
#ifndef FLEXGRAFT_DAEMON_UPGRADE_REQUEST_H
#define FLEXGRAFT_DAEMON_UPGRADE_REQUEST_H

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"
#include "base/schema.h"

extern const struct schema upgrade_schema;

struct upgrade_request {
        json_t *json; /* all of it; owned */
        bool dry_run; /* only look */
};

/* upgrade_parse() - nothing, or an object. Errors: OPERATION_PARSE. */
int upgrade_parse(int argc, char **argv, struct upgrade_request *ret_request, struct error *error);

/*
 * upgrade_run() - each mount that an older program serves is served by the installed one, or said to be served still.
 *
 * Needs:   what upgrade_mount() needs.
 * Gives:   ret_reply, owned by the caller. Returns: how many were not upgraded that should have been.
 * Errors:  those of upgrade_each().
 */
int upgrade_run(const struct upgrade_request *request, json_t **ret_reply, struct error *error);

/* upgrade_say_failure() - print the reply. Returns the exit status. */
int upgrade_say_failure(const struct error *error);

#endif
