/* SPDX-License-Identifier: Apache-2.0 */
/* mount-tmpfs REQUEST - a fresh tmpfs, into a running container. */
#include "privileges/mount-tmpfs.h"
#include "daemon/remap.h"
#include "inject/helper_main.h"

static const struct source_kind *const sources[] = { &source_tmpfs, NULL };

static const struct helper helper = {
        .program = { .usage = { .name = "mount-tmpfs",
                                .about = "Mount a fresh tmpfs inside a container that is already running. The "
                                         "container's root cannot raise its size, except with \"ids\": \"userns\".",
                                .schema = HELPER_SCHEMA(source_tmpfs_keys, REPLIES_MOUNT),
                                .examples = "Example:\n"
                                            "  mount-tmpfs '{\"container\": \"web\", \"target\": \"/cache\", \"size\": "
                                            "\"64m\"}'\n" },
                     .privileges = &PRIVILEGES,
                     .before_drop = remap_begin_for },
        .kind = REQUEST_MOUNT,
        .sources = sources,
};

int main(int argc, char **argv)
{
        return helper_main(&helper, argc, argv);
}
