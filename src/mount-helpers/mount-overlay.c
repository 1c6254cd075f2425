/* SPDX-License-Identifier: Apache-2.0 */
/* mount-overlay REQUEST - an overlay of directories of the node, into a running container. */
#include "privileges/mount-overlay.h"
#include "inject/apply.h"
#include "inject/reply.h"
#include "inject/request_parse.h"
#include "inject/source.h"
#include "process/program.h"

static const char help[] =
        "\n"
        "Mount an overlay of directories of this node inside a container that is already running. Owners in\n"
        "the layers are stored as the container counts them: 0 is its root.\n"
        "REQUEST is a JSON object; - reads it from standard input. The answer is one JSON object.\n"
        "\n"
        "  container       a process id, a container's id, {\"pid\":N}, {\"id\":S,\"runtime\":S} or {\"procDir\":S}\n"
        "  target          absolute path as the container sees it; made if missing\n"
        "  lower           the layers, absolute paths on the node, the topmost first\n"
        "  upper, work     where changes go, and an empty directory beside it, both of one filesystem;\n"
        "                  read-only without them (then at least two lower layers)\n"
        "  readOnly        true: read-only\n"
        "  options         of the mount or of overlay, \"noatime,volatile\"; nosuid and nodev unless \"suid\", "
        "\"dev\"\n"
        "  propagation     private (default), slave, shared, unbindable\n"
        "  ids             auto (default), idmapped, host: whose ids owners are shown as\n"
        "  locked          true: root in the container cannot remount read-only, noexec away (nosuid, nodev never)\n"
        "  mkdir           false: refuse a target that is not there\n"
        "  replace         true: take the place of what flexgraft put there before, with no moment without a mount\n"
        "                  where the kernel can; the answer says whether it could\n"
        "  id              a name for mount-list and mount-remove; derived if absent\n"
        "  dryRun          true: only say what would be done\n"
        "  timeoutSeconds  1 to 3600, default 30\n"
        "\n"
        "Example: mount-overlay '{\"container\": \"web\", \"target\": \"/app\", \"lower\": [\"/srv/app/2\", "
        "\"/srv/app/1\"],\n"
        "                         \"upper\": \"/srv/web/upper\", \"work\": \"/srv/web/work\"}'\n"
        "Exit status: 0 done, 1 failed, 2 the request cannot be understood. Needs root.\n";

static const struct program program = { .name = "mount-overlay", .help = help, .privileges = &PRIVILEGES };

static const struct source_kind *const sources[] = { &source_overlay, NULL };

int main(int argc, char **argv)
{
        cleanup_request struct request request = {};
        static struct error error;
        struct outcome outcome;
        struct plan plan;

        if (program_begin(&program, argc, argv, &error) < 0 ||
            request_parse(&request, REQUEST_MOUNT_OVERLAY, sources, argc, argv, &error) < 0)
                return inject_reply_failure(&request, &error);
        plan_make(&plan, &request);
        if (plan_apply(&plan, &outcome, &error) < 0)
                return inject_reply_failure(&request, &error);
        return request.dry_run ? inject_reply_planned(&plan, &outcome) : inject_reply_mounted(&outcome);
}
