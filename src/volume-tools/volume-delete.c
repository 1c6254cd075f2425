/* SPDX-License-Identifier: Apache-2.0 */
/* volume-delete REQUEST - give a volume back to its pool. */
#include "privileges/volume-delete.h"
#include "pool/pool_kind.h"
#include "provision/provision.h"
#include "provision/reply.h"

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
        pool_kinds_allow();
        return provision_tool_main(&program, PROVISION_DELETE, provision_run, argc, argv);
}
