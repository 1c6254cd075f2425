/* SPDX-License-Identifier: Apache-2.0 */
/* volume-create REQUEST - make a volume in a pool, or adopt a disk that is there. */
#include "privileges/volume-create.h"
#include "pool/pool_kind.h"
#include "provision/provision.h"
#include "provision/reply.h"

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
        pool_kinds_allow();
        return provision_tool_main(&program, PROVISION_CREATE, provision_run, argc, argv);
}
