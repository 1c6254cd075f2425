/* SPDX-License-Identifier: Apache-2.0 */
/* mount-nfs REQUEST - an export of an NFS server, reached from a running container's network, into that container. */
#include "privileges/mount-nfs.h"
#include "daemon/remap.h"
#include "inject/helper_main.h"

static const struct source_kind *const sources[] = { &source_nfs, NULL };

static const struct helper helper = {
        .program = { .usage = { .name = "mount-nfs",
                                .about = "Mount an export of an NFS server (3, 4.0, 4.1, 4.2) inside a container that "
                                         "is already running. The server is found and reached from the container's "
                                         "network; owners are right in its user namespace. Unless the options name a "
                                         "version, the newest that the server speaks is taken.",
                                .schema = HELPER_SCHEMA(source_nfs_keys, REPLIES_MOUNT),
                                .examples = "Example:\n"
                                            "  mount-nfs '{\"container\": \"web\", \"source\": \"nas:/export\", "
                                            "\"target\": \"/data\"}'\n" },
                     .privileges = &PRIVILEGES,
                     .before_drop = remap_begin },
        .kind = REQUEST_MOUNT,
        .sources = sources,
};

int main(int argc, char **argv)
{
        return helper_main(&helper, argc, argv);
}
