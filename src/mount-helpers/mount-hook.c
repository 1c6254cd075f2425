/* SPDX-License-Identifier: Apache-2.0 */
/* mount-hook STAGE - the OCI hook: mounts that a container's annotations ask for. */
#include "privileges/mount-hook.h"
#include "inject/oci_hook.h"
#include "inject/remap_begin.h"
#include "inject/reply.h"
#include "process/program.h"

static const char help[] =
        "\n"
        "Called by a container runtime as an OCI hook, with the container's state on standard input.\n"
        "\n"
        "  createRuntime, prestart  mount what the container's annotations ask for, before its first instruction;\n"
        "                           a failure stops the container\n"
        "  poststart                the same once it runs; what is mounted already stays\n"
        "  poststop                 remove the records of what was mounted\n"
        "\n"
        "The annotations io.flexgraft.mounts and io.flexgraft.mounts.NAME hold JSON: one mount or an array of\n"
        "them, as mount-batch takes them, without \"container\". /etc/flexgraft/policy.json, section\n"
        "\"annotations\", says what they may ask for; without it, nothing.\n"
        "Says nothing but the reason of a failure, on standard error.\n"
        "\n"
        "Example: {\"path\": \"/usr/sbin/mount-hook\", \"args\": [\"mount-hook\", \"createRuntime\"]}\n"
        "Exit status: 0 done, or nothing was asked for; 1 failed; 2 it was called in a way it does not know.\n";

static const struct program program = { .name = "mount-hook",
                                        .help = help,
                                        .privileges = &PRIVILEGES,
                                        .arguments = "STAGE",
                                        .before_drop = remap_begin_by_policy };

int main(int argc, char **argv)
{
        cleanup_request struct request request = {};
        cleanup_oci_hook struct oci_hook hook = {};
        const struct request *failed = NULL;
        static struct error error;
        enum oci_hook_stage stage;
        int r;

        r = program_begin(&program, argc, argv, &error);
        if (r == 0 && (argc != 2 || !oci_hook_stage(argv[1], &stage)))
                return inject_reply_usage(program.name,
                                          "one argument is needed: createRuntime, prestart, poststart or poststop");
        if (r == 0)
                r = oci_hook_read(&hook, stage, &error);
        if (r == 0 && hook.asked)
                r = stage == HOOK_ENDED ? oci_hook_forget(&hook, &error)
                                        : oci_hook_mount(&hook, &request, &failed, &error);
        return r < 0 ? inject_reply_complaint(program.name, failed != NULL ? failed : &request, &error) : EXIT_DONE;
}
