/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reply.h - what the volume tools print: why one failed; their replies for people and as metrics; and what they take and
 * reply, for --help and --schema.
 */
#ifndef FLEXGRAFT_PROVISION_REPLY_H
#define FLEXGRAFT_PROVISION_REPLY_H

#include <jansson.h>

#include "base/error.h"
#include "base/people.h"
#include "base/schema.h"
#include "process/program.h"
#include "provision/request.h"

/* provision_reply_failure() - the reply. Returns the program's exit status. */
int provision_reply_failure(const struct provision_request *request, const struct error *error);

/* provision_reply_complaint() - the same on standard error, where standard output is not for JSON. */
int provision_reply_complaint(const struct provision_request *request, const struct error *error);

/* provision_metrics_say() - print the reply of volume-capacity as metrics. Returns the program's exit status. */
int provision_metrics_say(const json_t *reply);

/* One for each enum provision_verb. */
extern const struct schema provision_schemas[];

/* For people. */
extern const struct people_form provision_people_created[];
extern const struct people_form provision_people_deleted[];
extern const struct people_form provision_people_listed[];
extern const struct people_form provision_people_capacity[];
extern const struct people_form provision_people_expanded[];
extern const struct people_form provision_people_snapshot[];

/* ---- tool_main.c: the one body of the volume tools that act on a volume, from the request to the reply */

/* What a tool does. Gives: ret_reply, owned by the caller. */
typedef int provision_function(const struct provision_request *request, json_t **ret_reply, struct error *error);

/* provision_tool_main() - one request, one reply. Returns the program's exit status. */
int provision_tool_main(const struct program *program, enum provision_verb verb, provision_function *function, int argc,
                        char **argv);

#endif
