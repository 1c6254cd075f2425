/* SPDX-License-Identifier: Apache-2.0 */
/* mount-hook EVENT - the OCI hook: mounts that a container's annotations, or its devices, ask for. */
#include "privileges/mount-hook.h"

#include <string.h>
#include <unistd.h>

#include "base/reply.h"
#include "inject/oci_hook.h"
#include "inject/reply_failure.h"
#include "inject/request/request_keys.h"
#include "named/batch_begin.h"
#include "named/hook_devices.h"
#include "process/program.h"

#define ARGUMENTS "EVENT [--volume NAME --target PATH [--raw]] | --cdi [--json]"

static const struct schema schema = { .make_request = batch_schema_of_annotation,
                                      .reply_programs = 1,
                                      .replies = hook_devices_replies,
                                      .people = hook_devices_people };

static const char *cdi;

static const struct usage_option options[] = {
        { .name = "--cdi", .help = "write the files that make volumes devices of engines", .ret_word = &cdi },
        {},
};

static const struct program program = {
        .usage = { .name = "mount-hook",
                   .arguments = ARGUMENTS,
                   .about = "The OCI hook: a container runtime calls it with the container's state on standard input. "
                            "It mounts what is wanted in the container (\"persist\"), "
                            "and what its annotations ask for.\n"
                            "EVENT is createRuntime, prestart, poststart or poststop. createRuntime and prestart "
                            "mount before the container's first instruction; a failure stops the container. "
                            "poststart does the same once it runs; what is mounted already stays. poststop removes "
                            "the records of what was mounted.\n"
                            "The annotations io.flexgraft.mounts and io.flexgraft.mounts.NAME hold JSON: one mount "
                            "or an array of them, as mount-batch takes them, without \"container\" (except in "
                            "\"from\"), \"persist\" and \"id\". "
                            "The section \"annotations\" of /etc/flexgraft/policy.json says what they may ask for; "
                            "without it, nothing. The reason of a failure is printed on standard error.\n"
                            "With --volume it mounts that volume on that path instead, or with --raw the device of a "
                            "block volume; the section applies to it likewise. --cdi writes /etc/cdi/flexgraft.json, "
                            "by which engines call it so: volumes are their devices flexgraft.io/volume=NAME. "
                            "volume-create and volume-delete keep the file up to date from then on.",
                   .schema = &schema,
                   .options = options,
                   .examples =
                           "Example, in a hook's configuration:\n"
                           "  {\"path\": \"/usr/sbin/mount-hook\", \"args\": [\"mount-hook\", \"createRuntime\"]}\n",
                   .exit_status = "Exit status: 0 done, or nothing was asked for; 1 failed; 2 the call cannot be "
                                  "understood." },
        .privileges = &PRIVILEGES,
        .before_drop = batch_begin_by_policy,
};

static int write_devices(bool to_people)
{
        json_t *reply = NULL;
        static struct error error;

        if (hook_devices_write(&reply, &error) < 0)
                return inject_reply_complaint(program.usage.name, &(struct request){}, /* failed= */ NULL, &error);
        reply_to_people(to_people ? schema.people : NULL);
        return reply_say(reply, EXIT_DONE);
}

int main(int argc, char **argv)
{
        cleanup_request struct request request = {};
        cleanup_oci_hook struct oci_hook hook = {};
        const bool json = argc == 3 && strcmp(argv[2], "--json") == 0;
        const bool devices = (argc == 2 || json) && strcmp(argv[1], "--cdi") == 0;
        const bool to_people = devices && !json && isatty(STDOUT_FILENO) == 1; /* the filter does not let it ask */
        const struct outcome *failed = NULL;
        struct oci_hook_volume volume = {};
        static struct error error;
        struct error ignored;
        enum oci_hook_event event;
        int with_volume = hook_devices_take(&argc, argv, &volume);
        int r;

        r = program_begin(&program, devices ? 1 : argc, argv, &error);
        if (r == 0 && devices)
                return write_devices(to_people);
        if (r == 0 && (argc != 2 || with_volume < 0 || !oci_hook_event(argv[1], &event)))
                return inject_reply_usage(program.usage.name,
                                          "an event is needed: createRuntime, prestart, poststart or poststop; usage: "
                                          "mount-hook " ARGUMENTS);
        if (r == 0)
                r = oci_hook_read(&hook, event, with_volume > 0 ? &volume : NULL, &error);
        if (r == 0 && oci_hook_concerns(&hook))
                r = event == HOOK_ENDED ? oci_hook_forget(&hook, &named_releaser, &error)
                                        : oci_hook_mount(&hook, &request, &failed, &error);
        if (r == 0 && hook.wanted.mounts != NULL && event != HOOK_ENDED)
                (void)oci_hook_forget(&hook, &named_releaser, &ignored); /* of its last run: perhaps no poststop was */
        if (r < 0)
                oci_hook_log(&hook, &error);
        return r < 0 ? inject_reply_complaint(program.usage.name, &request, failed, &error) : EXIT_DONE;
}
