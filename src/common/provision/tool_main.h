/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tool_main.h - the one body of the volume tools that act on a volume.
 */
#ifndef FLEXGRAFT_PROVISION_TOOL_MAIN_H
#define FLEXGRAFT_PROVISION_TOOL_MAIN_H

#include <jansson.h>

#include "process/program.h"
#include "provision/request.h"

/* What a tool does. Gives: ret_reply, owned by the caller. */
typedef int provision_function(const struct provision_request *request, json_t **ret_reply, struct error *error);

/* provision_tool_main() - one request, one reply. Returns the program's exit status. */
int provision_tool_main(const struct program *program, enum provision_verb verb, provision_function *function, int argc,
                        char **argv);

#endif
