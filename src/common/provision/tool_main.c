/* SPDX-License-Identifier: Apache-2.0 */
#include "provision/reply.h"

#include "base/reply.h"

int provision_tool_main(const struct program *program, enum provision_verb verb, provision_function *function, int argc,
                        char **argv)
{
        cleanup_provision_request struct provision_request request = { .verb = verb };
        static struct error error;
        json_t *reply;

        if (program_begin_words(program, &argc, &argv, &error) < 0 ||
            provision_request_parse(&request, verb, argc, argv, &error) < 0 || function(&request, &reply, &error) < 0)
                return provision_reply_failure(&request, &error);
        return reply_say(reply, EXIT_DONE);
}
