/* SPDX-License-Identifier: Apache-2.0 */
/* volume-list [REQUEST] - pools, disks that could be adopted, and volumes. */
#include "privileges/volume-list.h"
#include "base/reply.h"
#include "process/program.h"
#include "provision/provision.h"
#include "provision/reply.h"
#include "provision/schema.h"

static const struct program program = {
        .usage = { .name = "volume-list",
                   .arguments = "[REQUEST | -]",
                   .about = "List the pools (raw, without an id), the disks in them that no volume has (raw, with an "
                            "id), and the volumes (mount or block).",
                   .schema = &provision_schemas[PROVISION_LIST],
                   .examples = "Example: volume-list '{\"pool\": \"fast\"}'\n" },
        .privileges = &PRIVILEGES,
        .before_drop = provision_begin,
};

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
