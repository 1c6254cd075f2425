/* SPDX-License-Identifier: Apache-2.0 */
/* mount-nfs REQUEST - an export of an NFS server, reached from a running container's network, into that container. */
#include "privileges/mount-nfs.h"
#include "inject/apply.h"
#include "inject/remap.h"
#include "inject/reply.h"
#include "inject/request_parse.h"
#include "inject/source.h"
#include "process/program.h"

static const char help[] =
        "\n"
        "Mount an export of an NFS server (3, 4.0, 4.1, 4.2) inside a container that is already running. The server\n"
        "is found and reached from the container's network; owners are right in its user namespace.\n"
        "REQUEST is a JSON object; - reads it from standard input. The answer is one JSON object.\n"
        "\n"
        "  container       a process id, a container's id, {\"pid\":N}, {\"id\":S,\"runtime\":S} or {\"procDir\":S}\n"
        "  source          \"host:/path\" or \"[IPv6 address]:/path\"; or instead\n"
        "  server, share   the host and the path\n"
        "  target          absolute path as the container sees it; made if missing\n"
        "  readOnly        true: read-only\n"
        "  options         of nfs(5), \"vers=4.2,rsize=65536\" or an array of them, or of the mount; nosuid and nodev\n"
        "                  unless \"suid\", \"dev\". No version named: the newest that the server speaks\n"
        "  propagation     private (default), slave, shared, unbindable\n"
        "  ids             auto (default), userns, idmapped, remap, host: whose ids owners are shown as; auto takes\n"
        "                  the first that this kernel can do, remap at last, which it always can\n"
        "  locked          true: root in the container cannot remount read-only, nosuid, nodev, noexec away\n"
        "  mkdir           false: refuse a target that is not there\n"
        "  replace         true: take the place of what flexgraft put there before, with no moment without a mount\n"
        "                  where the kernel can; the answer says whether it could\n"
        "  id              a name for mount-list and mount-remove; derived if absent\n"
        "  dryRun          true: only say what would be done\n"
        "  timeoutSeconds  1 to 3600, default 30: for finding the server and mounting, together\n"
        "\n"
        "Example: mount-nfs '{\"container\": \"web\", \"source\": \"nas:/export/data\", \"target\": \"/data\"}'\n"
        "Exit status: 0 done, 1 failed, 2 the request cannot be understood. Needs root.\n";

static const struct program program = {
        .name = "mount-nfs", .help = help, .privileges = &PRIVILEGES, .before_drop = remap_begin
};

static const struct source_kind *const sources[] = { &source_nfs, NULL };

int main(int argc, char **argv)
{
        cleanup_request struct request request = {};
        static struct error error;
        struct outcome outcome;
        struct plan plan;

        if (program_begin(&program, argc, argv, &error) < 0 ||
            request_parse(&request, REQUEST_MOUNT_NFS, sources, argc, argv, &error) < 0)
                return inject_reply_failure(&request, &error);
        plan_make(&plan, &request);
        if (plan_apply(&plan, &outcome, &error) < 0)
                return inject_reply_failure(&request, &error);
        return request.dry_run ? inject_reply_planned(&plan, &outcome) : inject_reply_mounted(&outcome);
}
