/* SPDX-License-Identifier: Apache-2.0 */
/* mount-container-to-container REQUEST - a file or directory of one running container, into another. */
#include "privileges/mount-container-to-container.h"
#include "inject/apply.h"
#include "inject/reply.h"
#include "inject/request_parse.h"
#include "inject/source.h"
#include "process/program.h"

static const char help[] =
        "\n"
        "Mount a file or directory of one running container inside another, with its owners translated when\n"
        "the two have different user namespaces. REQUEST is a JSON object; - reads it from standard input.\n"
        "The answer is one JSON object.\n"
        "\n"
        "  from            {\"container\": ..., \"path\": ...}: the source, as that container sees it\n"
        "  to              {\"container\": ..., \"path\": ...}: the target; made if missing\n"
        "                  A container is a process id, a container's id, {\"pid\":N}, {\"id\":S,\"runtime\":S} or "
        "{\"procDir\":S}.\n"
        "  mkdirSource     true: make a missing source directory, owned by its container's root\n"
        "  readOnly        true: read-only\n"
        "  recursive       true: with the mounts below the source\n"
        "  options         \"noexec,noatime\" or [\"noexec\",\"noatime\"]; nosuid and nodev unless \"suid\", \"dev\"\n"
        "  propagation     private (default), slave, shared, unbindable\n"
        "  ids             auto (default), host: whose ids owners are shown as\n"
        "  locked          true: root in the container cannot remount read-only, noexec away (nosuid, nodev never)\n"
        "  mkdir           false: refuse a target that is not there\n"
        "  replace         true: take the place of what flexgraft put there before, with no moment without a mount\n"
        "                  where the kernel can; the answer says whether it could\n"
        "  id              a name for mount-list and mount-remove; derived if absent\n"
        "  dryRun          true: only say what would be done\n"
        "  timeoutSeconds  1 to 3600, default 30\n"
        "\n"
        "Example: mount-container-to-container '{\"from\": {\"container\": \"db\", \"path\": \"/run/db\"},\n"
        "                                        \"to\": {\"container\": \"web\", \"path\": \"/run/db\"}}'\n"
        "Exit status: 0 done, 1 failed, 2 the request cannot be understood. Needs root.\n";

static const struct program program = { .name = "mount-container-to-container",
                                        .help = help,
                                        .privileges = &PRIVILEGES };

static const struct source_kind *const sources[] = { &source_container, NULL };

int main(int argc, char **argv)
{
        cleanup_request struct request request = {};
        static struct error error;
        struct outcome outcome;
        struct plan plan;

        if (program_begin(&program, argc, argv, &error) < 0 ||
            request_parse(&request, REQUEST_MOUNT_CONTAINER, sources, argc, argv, &error) < 0)
                return inject_reply_failure(&request, &error);
        plan_make(&plan, &request);
        if (plan_apply(&plan, &outcome, &error) < 0)
                return inject_reply_failure(&request, &error);
        return request.dry_run ? inject_reply_planned(&plan, &outcome) : inject_reply_mounted(&outcome);
}
