/* SPDX-License-Identifier: Apache-2.0 */
/* volume-list [REQUEST] - pools, disks that could be adopted, and volumes. */
#include "privileges/volume-list.h"
#include "base/reply.h"
#include "process/program.h"
#include "provision/provision.h"
#include "provision/reply.h"

static const char help[] =
        "\n"
        "List the pools (raw, without an id), the disks in them that no volume has (raw, with an id), and the volumes\n"
        "(mount or block). REQUEST is a JSON object and may be left out; - reads it from standard input. The answer "
        "is\n"
        "one JSON object.\n"
        "\n"
        "  pool  this one alone\n"
        "\n"
        "Example: volume-list '{\"pool\": \"fast\"}'\n"
        "Exit status: 0 done, 1 failed, 2 the request cannot be understood. Needs root.\n";

static const struct program program = { .name = "volume-list",
                                        .help = help,
                                        .privileges = &PRIVILEGES,
                                        .arguments = "[REQUEST | -]",
                                        .before_drop = provision_begin };

int main(int argc, char **argv)
{
        cleanup_provision_request struct provision_request request = { .verb = PROVISION_LIST };
        json_t *reply;
        static struct error error;

        if (program_begin(&program, argc, argv, &error) < 0 ||
            provision_request_parse(&request, PROVISION_LIST, argc, argv, &error) < 0 ||
            provision_run(&request, &reply, &error) < 0)
                return provision_reply_failure(&request, &error);
        return reply_say(reply, EXIT_DONE);
}
