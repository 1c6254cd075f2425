/* SPDX-License-Identifier: Apache-2.0 */
/* mount-tmpfs REQUEST - a fresh tmpfs, into a running container. */
#include "privileges/mount-tmpfs.h"
#include "inject/apply.h"
#include "inject/reply.h"
#include "inject/request_parse.h"
#include "inject/source.h"
#include "process/program.h"

static const char help[] =
        "\n"
        "Mount a fresh tmpfs inside a container that is already running. Its root cannot raise the size.\n"
        "REQUEST is a JSON object; - reads it from standard input. The answer is one JSON object.\n"
        "\n"
        "  container       a process id, a container's id, {\"pid\":N}, {\"id\":S,\"runtime\":S} or {\"procDir\":S}\n"
        "  target          absolute path as the container sees it; made if missing\n"
        "  size            bytes, or \"64m\", \"64Mi\", \"1g\", \"10%\" of the memory; half of the memory if absent\n"
        "  mode            of its root directory, as \"0755\"; \"1777\" if absent\n"
        "  inodes          how many files, directories and links it may hold\n"
        "  uid, gid        of its root directory, as the container counts; its root's if absent\n"
        "  readOnly        true: read-only\n"
        "  options         of the mount or of tmpfs(5), \"noexec,huge=never\"; nosuid and nodev unless \"suid\", "
        "\"dev\"\n"
        "  propagation     private (default), slave, shared, unbindable\n"
        "  ids             auto (default), idmapped, userns (its root may raise the size), host\n"
        "  locked          true: root in the container cannot remount read-only, nosuid, nodev, noexec away\n"
        "  mkdir           false: refuse a target that is not there\n"
        "  replace         true: take the place of what flexgraft put there before, with no moment without a mount\n"
        "                  where the kernel can; the answer says whether it could\n"
        "  id              a name for mount-list and mount-remove; derived if absent\n"
        "  dryRun          true: only say what would be done\n"
        "  timeoutSeconds  1 to 3600, default 30\n"
        "\n"
        "Example: mount-tmpfs '{\"container\": \"web\", \"target\": \"/cache\", \"size\": \"64m\"}'\n"
        "Exit status: 0 done, 1 failed, 2 the request cannot be understood. Needs root.\n";

static const struct program program = { .name = "mount-tmpfs", .help = help, .privileges = &PRIVILEGES };

static const struct source_kind *const sources[] = { &source_tmpfs, NULL };

int main(int argc, char **argv)
{
        cleanup_request struct request request = {};
        static struct error error;
        struct outcome outcome;
        struct plan plan;

        if (program_begin(&program, argc, argv, &error) < 0 ||
            request_parse(&request, REQUEST_MOUNT_TMPFS, sources, argc, argv, &error) < 0)
                return inject_reply_failure(&request, &error);
        plan_make(&plan, &request);
        if (plan_apply(&plan, &outcome, &error) < 0)
                return inject_reply_failure(&request, &error);
        return request.dry_run ? inject_reply_planned(&plan, &outcome) : inject_reply_mounted(&outcome);
}
