/* SPDX-License-Identifier: Apache-2.0 */
/* volume-create REQUEST - make a volume in a pool, or adopt a disk that is there. */
#include "privileges/volume-create.h"
#include "base/reply.h"
#include "process/program.h"
#include "provision/pool_nfs_share.h"
#include "provision/provision.h"
#include "provision/reply.h"
#include "provision/schema.h"

static const struct program program = {
        .usage = { .name = "volume-create",
                   .about = "Make a volume in a pool, or adopt a disk that is there already. The same request twice is "
                            "one volume.",
                   .options = usage_of_long,
                   .schema = &provision_schemas[PROVISION_CREATE],
                   .examples = "Example: volume-create '{\"name\": \"db\", \"size\": \"10g\", \"pool\": \"fast\"}'\n" },
        .privileges = &PRIVILEGES,
        .before_drop = provision_begin,
};

int main(int argc, char **argv)
{
        cleanup_provision_request struct provision_request request = { .verb = PROVISION_CREATE };
        json_t *reply;
        static struct error error;

        pool_nfs_allow();
        if (program_begin_words(&program, &argc, &argv, &error) < 0 ||
            provision_request_parse(&request, PROVISION_CREATE, argc, argv, &error) < 0 ||
            provision_run(&request, &reply, &error) < 0)
                return provision_reply_failure(&request, &error);
        return reply_say(reply, EXIT_DONE);
}
