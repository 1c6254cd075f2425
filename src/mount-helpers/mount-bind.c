/* SPDX-License-Identifier: Apache-2.0 */
/* mount-bind REQUEST - a file or directory of the node, into a running container. */
#include "privileges/mount-bind.h"
#include "daemon/remap.h"
#include "inject/helper_main.h"

static const struct source_kind *const sources[] = { &source_bind, NULL };

static const struct helper helper = {
        .program = { .usage = { .name = "mount-bind",
                                .about = "Mount a file or directory of this node inside a container that is already "
                                         "running.",
                                .schema = HELPER_SCHEMA(source_bind_keys, REPLIES_MOUNT),
                                .examples = "Example:\n"
                                            "  mount-bind '{\"container\": \"web\", \"source\": \"/srv/data\", "
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
