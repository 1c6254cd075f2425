/* SPDX-License-Identifier: Apache-2.0 */
/* mount-hook STAGE - the OCI hook: mounts that a container's annotations ask for. */
#include "privileges/mount-hook.h"
#include "inject/batch_schema.h"
#include "inject/oci_hook.h"
#include "inject/remap_begin.h"
#include "inject/reply.h"
#include "inject/request_keys.h"
#include "process/program.h"

static const struct schema schema = { .request = &request_keys, .make_request = batch_schema_of_annotation };

static const struct program program = {
        .usage = { .name = "mount-hook",
                   .arguments = "STAGE",
                   .about = "The OCI hook: a container runtime calls it with the container's state on standard input.\n"
                            "STAGE is createRuntime, prestart, poststart or poststop. createRuntime and prestart mount "
                            "what the container's annotations ask for, before its "
                            "first instruction; a failure stops the container. poststart does the same once it runs; "
                            "what is mounted already stays. poststop removes the records of what was mounted.\n"
                            "The annotations io.flexgraft.mounts and io.flexgraft.mounts.NAME hold JSON: one mount or "
                            "an array of them, as mount-batch takes them, without \"container\". The section "
                            "\"annotations\" of /etc/flexgraft/policy.json says what they may ask for; without it, "
                            "nothing. The reason of a failure is printed on standard error.",
                   .schema = &schema,
                   .examples =
                           "Example, in a hook's configuration:\n"
                           "  {\"path\": \"/usr/sbin/mount-hook\", \"args\": [\"mount-hook\", \"createRuntime\"]}\n",
                   .exit_status = "Exit status: 0 done, or nothing was asked for; 1 failed; 2 the call cannot be "
                                  "understood." },
        .privileges = &PRIVILEGES,
        .before_drop = remap_begin_by_policy,
};

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
                return inject_reply_usage(program.usage.name,
                                          "one argument is needed: createRuntime, prestart, poststart or poststop");
        if (r == 0)
                r = oci_hook_read(&hook, stage, &error);
        if (r == 0 && hook.asked)
                r = stage == HOOK_ENDED ? oci_hook_forget(&hook, &error)
                                        : oci_hook_mount(&hook, &request, &failed, &error);
        return r < 0 ? inject_reply_complaint(program.usage.name, failed != NULL ? failed : &request, &error)
                     : EXIT_DONE;
}
