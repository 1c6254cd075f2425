/* SPDX-License-Identifier: Apache-2.0 */
/* remap-upgrade [REQUEST] - the installed remap-daemon serves the mounts that an older one serves. */
#include "privileges/remap-upgrade.h"
#include "base/reply.h"
#include "daemon/remap.h"
#include "daemon/upgrade_request.h"
#include "process/program.h"

static const struct program program = {
        .usage = { .name = "remap-upgrade",
                   .about =
                           "After remap-daemon was replaced by another version: have that serve the mounts that the "
                           "old one serves (\"ids\": \"remap\", remap-mount, idMappable). Open files, mappings and "
                           "locks go on; a request waits for a moment, and none fails. What cannot be upgraded, "
                           "because the versions differ too much, is served by the old program as before, and named.\n",
                   .schema = &upgrade_schema,
                   .examples = "Examples:\n"
                               "  remap-upgrade\n"
                               "  remap-upgrade '{\"dryRun\": true}'\n" },
        .privileges = &PRIVILEGES,
        .rootless = true, /* CAP_SYS_RESOURCE is needed only where the old program may use more than this one */
        .before_drop = remap_begin_heirs,
};

int main(int argc, char **argv)
{
        struct upgrade_request request = {};
        static struct error error;
        json_t *reply;
        int r = program_begin_words(&program, &argc, &argv, &error);

        if (r < 0 || (r = upgrade_parse(argc, argv, &request, &error)) < 0 ||
            (r = upgrade_run(&request, &reply, &error)) < 0)
                return upgrade_say_failure(&error);
        return reply_say(reply, r == 0 ? EXIT_DONE : EXIT_FAILED);
}
