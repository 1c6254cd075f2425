/* SPDX-License-Identifier: Apache-2.0 */
/* volume-snapshot REQUEST - take a snapshot of a volume, or go back to one. */
#include "privileges/volume-snapshot.h"
#include "provision/reply.h"
#include "volume/exec_helpers.h"
#include "volume/tools.h"

static const struct program program = {
        .usage = { .name = "volume-snapshot",
                   .about = "Take a snapshot of a volume, also while it is mounted, or put the content of a snapshot "
                            "back while nothing uses the volume. volume-list lists snapshots, volume-delete deletes "
                            "them, and volume-create makes volumes of them (from).",
                   .options = usage_of_long,
                   .schema = &provision_schemas[PROVISION_SNAPSHOT],
                   .examples = "Example: volume-snapshot '{\"name\": \"db\", \"snapshot\": \"db-monday\"}'\n"
                               "         volume-snapshot '{\"name\": \"db\", \"restore\": \"db-monday\"}'\n" },
        .privileges = &PRIVILEGES,
        .before_drop = volume_exec_helpers_begin,
};

int main(int argc, char **argv)
{
        return provision_tool_main(&program, PROVISION_SNAPSHOT, volume_snapshot_named, argc, argv);
}
