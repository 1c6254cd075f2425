/* SPDX-License-Identifier: Apache-2.0 */
/* mount-block REQUEST - a filesystem on a block device of the node, into a running container. */
#include "privileges/mount-block.h"
#include "daemon/remap.h"
#include "inject/helper_main.h"

static const struct source_kind *const sources[] = { &source_block, NULL };

static const struct helper helper = {
        .program = { .usage = { .name = "mount-block",
                                .about = "Mount the filesystem on a block device of this node inside a container that "
                                         "is already running, and that need not see the device.",
                                .schema = HELPER_SCHEMA(source_block_keys, REPLIES_MOUNT),
                                .examples = "Example:\n"
                                            "  mount-block '{\"container\": \"web\", \"source\": \"LABEL=data\", "
                                            "\"target\": \"/data\"}'\n" },
                     .privileges = &PRIVILEGES,
                     .before_drop = remap_begin_for },
        .kind = REQUEST_MOUNT,
        .sources = sources,
};

int main(int argc, char **argv)
{
        return helper_main(&helper, argc, argv);
}
