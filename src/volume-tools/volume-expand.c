/* SPDX-License-Identifier: Apache-2.0 */
/* volume-expand REQUEST - let a volume grow, also while it is mounted. */
#include "privileges/volume-expand.h"
#include "provision/reply.h"
#include "volume/exec_helpers.h"
#include "volume/tools.h"

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
        return provision_tool_main(&program, PROVISION_EXPAND, volume_expand_named, argc, argv);
}
