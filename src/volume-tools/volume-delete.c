/* SPDX-License-Identifier: Apache-2.0 */
/* volume-delete REQUEST - give a volume back to its pool. */
#include "privileges/volume-delete.h"
#include "base/reply.h"
#include "process/program.h"
#include "provision/pool_nfs_share.h"
#include "provision/provision.h"
#include "provision/reply.h"
#include "provision/schema.h"

static const struct program program = {
        .usage = { .name = "volume-delete",
                   .about = "Give a volume back to its pool. A volume that is attached is refused; deleting a volume "
                            "that does not exist succeeds.",
                   .options = usage_of_long,
                   .schema = &provision_schemas[PROVISION_DELETE],
                   .examples = "Example: volume-delete '{\"name\": \"db\"}'\n" },
        .privileges = &PRIVILEGES,
        .before_drop = provision_begin,
};

int main(int argc, char **argv)
{
        cleanup_provision_request struct provision_request request = { .verb = PROVISION_DELETE };
        json_t *reply;
        static struct error error;

        pool_nfs_allow();
        if (program_begin_words(&program, &argc, &argv, &error) < 0 ||
            provision_request_parse(&request, PROVISION_DELETE, argc, argv, &error) < 0 ||
            provision_run(&request, &reply, &error) < 0)
                return provision_reply_failure(&request, &error);
        return reply_say(reply, EXIT_DONE);
}
