/* SPDX-License-Identifier: Apache-2.0 */
/* mount-block REQUEST - a filesystem on a block device of the node, into a running container. */
#include "privileges/mount-block.h"
#include "inject/apply.h"
#include "inject/remap.h"
#include "inject/reply.h"
#include "inject/request_parse.h"
#include "inject/source.h"
#include "process/program.h"

static const char help[] =
        "\n"
        "Mount the filesystem on a block device of this node inside a container that is already running,\n"
        "and that need not see the device. REQUEST is a JSON object; - reads it from standard input.\n"
        "The answer is one JSON object.\n"
        "\n"
        "  container       a process id, a container's id, {\"pid\":N}, {\"id\":S,\"runtime\":S} or {\"procDir\":S}\n"
        "  source          the device's path, or UUID=, LABEL=, PARTUUID=, PARTLABEL=\n"
        "  target          absolute path as the container sees it; made if missing\n"
        "  raw             true: the device itself, usable by the container's root, at the target: a file\n"
        "  fsType          ext4, xfs, btrfs, erofs, squashfs, ...; found on the device if absent\n"
        "  readOnly        true: read-only\n"
        "  options         of the mount or the filesystem, \"noatime,data=ordered\" or an array of them;\n"
        "                  nosuid and nodev unless \"suid\", \"dev\"; errors=remount-ro on ext4 unless said\n"
        "  propagation     private (default), slave, shared, unbindable\n"
        "  ids             auto (default), idmapped, userns, remap, host: whose ids owners are shown as\n"
        "  locked          true: root in the container cannot remount read-only, nosuid, nodev, noexec away\n"
        "  mkdir           false: refuse a target that is not there\n"
        "  replace         true: take the place of what flexgraft put there before, with no moment without a mount\n"
        "                  where the kernel can; the answer says whether it could\n"
        "  id              a name for mount-list and mount-remove; derived if absent\n"
        "  dryRun          true: only say what would be done\n"
        "  timeoutSeconds  1 to 3600, default 30\n"
        "\n"
        "Example: mount-block '{\"container\": \"web\", \"source\": \"LABEL=data\", \"target\": \"/data\"}'\n"
        "Exit status: 0 done, 1 failed, 2 the request cannot be understood. Needs root.\n";

static const struct program program = {
        .name = "mount-block", .help = help, .privileges = &PRIVILEGES, .before_drop = remap_begin_for
};

static const struct source_kind *const sources[] = { &source_block, NULL };

int main(int argc, char **argv)
{
        cleanup_request struct request request = {};
        static struct error error;
        struct outcome outcome;
        struct plan plan;

        if (program_begin(&program, argc, argv, &error) < 0 ||
            request_parse(&request, REQUEST_MOUNT_BLOCK, sources, argc, argv, &error) < 0)
                return inject_reply_failure(&request, &error);
        plan_make(&plan, &request);
        if (plan_apply(&plan, &outcome, &error) < 0)
                return inject_reply_failure(&request, &error);
        return request.dry_run ? inject_reply_planned(&plan, &outcome) : inject_reply_mounted(&outcome);
}
