/* SPDX-License-Identifier: Apache-2.0 */
/* mount-batch REQUEST - many mounts into running containers: all of them or none. */
#include "privileges/mount-batch.h"
#include "inject/apply.h"
#include "inject/remap_begin.h"
#include "inject/reply.h"
#include "inject/request_parse.h"
#include "inject/source.h"
#include "process/program.h"

static const char help[] =
        "\n"
        "Put many mounts into a container that is already running: all of them or none. Every mount is\n"
        "prepared before any is placed; then they are placed, parents before children.\n"
        "REQUEST is a JSON object; - reads it from standard input. The answer is one JSON object.\n"
        "\n"
        "  container       a process id, a container's id, {\"pid\":N}, {\"id\":S,\"runtime\":S} or {\"procDir\":S};\n"
        "                  for each entry that does not name its own\n"
        "  mounts          an array of at most 256 entries, each of which is\n"
        "                  - the request of another helper with a \"type\": bind, block, container-to-container,\n"
        "                    tmpfs, overlay or nfs; or\n"
        "                  - an entry of an OCI configuration's \"mounts\": destination, type, source, options\n"
        "  replace         true: for every entry\n"
        "  dryRun          true: only say what would be done\n"
        "  timeoutSeconds  for all together, 1 to 3600, default 30\n"
        "\n"
        "Example: mount-batch '{\"container\": \"web\", \"mounts\": [\n"
        "           {\"type\": \"bind\", \"source\": \"/srv/data\", \"target\": \"/data\"},\n"
        "           {\"destination\": \"/data/tmp\", \"type\": \"tmpfs\", \"source\": \"tmpfs\", \"options\": "
        "[\"size=16m\"]}]}'\n"
        "Exit status: 0 done, 1 failed, 2 the request cannot be understood. Needs root.\n";

static const struct program program = {
        .name = "mount-batch", .help = help, .privileges = &PRIVILEGES, .before_drop = remap_begin_for_batch
};

int main(int argc, char **argv)
{
        cleanup_request struct request request = {};
        const struct batch batch = { .request = &request };
        static struct outcome outcomes[REQUEST_ENTRIES_MAX];
        static struct plan plans[REQUEST_ENTRIES_MAX];
        const struct request *failed;
        static struct error error;

        if (program_begin(&program, argc, argv, &error) < 0 ||
            request_parse(&request, REQUEST_MOUNT_BATCH, source_kinds, argc, argv, &error) < 0)
                return inject_reply_failure(&request, &error);
        plan_make_batch(plans, &request);
        if (plan_apply_batch(plans, &batch, outcomes, &failed, &error) < 0)
                return inject_reply_failure_in(&request, failed, &error);
        return request.dry_run ? inject_reply_planned_all(plans, outcomes, request.entry_count)
                               : inject_reply_mounted_all(outcomes, request.entry_count);
}
