/* SPDX-License-Identifier: Apache-2.0 */
/* volume-expand REQUEST - let a volume grow, also while it is mounted. */
#include "privileges/volume-expand.h"
#include "base/reply.h"
#include "process/program.h"
#include "provision/reply.h"
#include "provision/schema.h"
#include "volume/exec_helpers.h"
#include "volume/expand_named.h"

static const struct program program = {
        .usage = { .name = "volume-expand",
                   .about = "Let a volume grow to a size, with its filesystem, also while a pod or a container has it "
                            "mounted. It never shrinks.",
                   .options = usage_of_long,
                   .schema = &provision_schemas[PROVISION_EXPAND],
                   .examples = "Example: volume-expand '{\"name\": \"db\", \"size\": \"20g\"}'\n" },
        .privileges = &PRIVILEGES,
        .before_drop = volume_exec_helpers_begin,
        .rootless = true, /* in a container root may lack SYS_RESOURCE, which only ext4 needs */
};

int main(int argc, char **argv)
{
        cleanup_provision_request struct provision_request request = { .verb = PROVISION_EXPAND };
        json_t *reply;
        static struct error error;

        if (program_begin_words(&program, &argc, &argv, &error) < 0 ||
            provision_request_parse(&request, PROVISION_EXPAND, argc, argv, &error) < 0 ||
            volume_expand_named(&request, &reply, &error) < 0)
                return provision_reply_failure(&request, &error);
        return reply_say(reply, EXIT_DONE);
}
