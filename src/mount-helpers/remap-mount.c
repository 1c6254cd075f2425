/* SPDX-License-Identifier: Apache-2.0 */
/* remap-mount REQUEST - a directory of the node, on another, as a filesystem that can be id-mapped. */
#include "privileges/remap-mount.h"
#include "base/reply.h"
#include "daemon/remap.h"
#include "inject/mappable.h"
#include "process/program.h"

static const struct program program = {
        .usage = { .name = "remap-mount",
                   .about = "Mount a directory of this node, or an export of an NFS server, on a directory as a "
                            "filesystem that container runtimes can id-map, each mount with a map of its own, also "
                            "where the source's filesystem cannot be id-mapped, as NFS. remap-daemon serves it until "
                            "the last mount of it is gone: umount TARGET. It needs Linux 6.12.\n",
                   .schema = &mappable_schema,
                   .examples = "Examples:\n"
                               "  remap-mount '{\"source\": \"/srv/shared\", \"target\": \"/srv/mappable\"}'\n"
                               "  remap-mount nfs:server:/export /srv/mappable --options vers=4.2\n" },
        .privileges = &PRIVILEGES,
        .before_drop = remap_begin_mappable,
};

int main(int argc, char **argv)
{
        struct mappable_request request = {};
        static struct error error;
        json_t *reply;

        if (program_begin_words(&program, &argc, &argv, &error) < 0 ||
            mappable_parse(argc, argv, &request, &error) < 0 || mappable_mount(&request, &reply, &error) < 0)
                return mappable_say_failure(&request, &error);
        return reply_say(reply, EXIT_DONE);
}
