/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.h - host-check: its request, all of its rows, its replies.
 */
#ifndef FLEXGRAFT_HOST_CHECK_H
#define FLEXGRAFT_HOST_CHECK_H

#include "base/error.h"
#include "base/schema.h"
#include "process/privileges.h"

extern const struct schema host_schema;

/* What host_check() replies. */
extern const struct key_table host_reply_keys;

struct host_request {
        json_t *json;        /* all of it; owned */
        const json_t *kinds; /* words that must work; NULL: none. Borrowed */
        int timeout_seconds;
};

/* host_begin() - start the helper processes of pools, and for versions. Before privileges_drop(); they end with us. */
int host_begin(int argc, char **argv, struct error *error);

/* host_parse() - Errors: OPERATION_PARSE. */
int host_parse(int argc, char **argv, struct host_request *ret_request, struct error *error);

/*
 * host_check() - look at everything, each row in a worker with a time limit of its own: a row that hangs is unknown.
 *
 * Gives:   ret_reply, the whole reply; owned by the caller.
 * Errors:  ETIMEDOUT the configuration cannot be read in time.
 */
int host_check(const struct host_request *request, const struct privileges *privileges, json_t **ret_reply,
               struct error *error);

/* host_say() - print the reply, as it is or as a table, and release it. Returns the exit status: 1 if it is not ready. */
int host_say(json_t *reply, bool table);

/* host_say_failure() - print an error, as a reply or on standard error. Returns the exit status. */
int host_say_failure(const struct error *error, bool table);

#endif
