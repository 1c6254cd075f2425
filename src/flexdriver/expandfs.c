/* SPDX-License-Identifier: Apache-2.0 */
/* expandfs JSON DEVICE DIR NEW_SIZE OLD_SIZE - make its filesystem larger, while it is mounted. */
#include "privileges/expandfs.h"
#include "process/program.h"
#include "volume/exec_helpers.h"
#include "volume/expand.h"
#include "volume/reply.h"

static const char help[] =
        "\n"
        "Make the filesystem that is mounted on DIR as large as its device, and that as large as NEW_SIZE bytes.\n"
        "\n" VERB_HELP;

static const struct program program = { .name = "expandfs",
                                        .help = help,
                                        .privileges = &PRIVILEGES,
                                        .arguments = "JSON DEVICE DIR NEW_SIZE OLD_SIZE",
                                        .before_drop = volume_exec_helpers_begin };

int main(int argc, char **argv)
{
        static struct volume_request request;
        static struct volume_call call;
        static struct error error;

        if (program_begin(&program, argc, argv, &error) < 0 ||
            volume_call_begin(&call, &request, VERB_EXPANDFS, argc, argv, &error) < 0 ||
            volume_call_run(&call, volume_expand_fs, &error) < 0)
                return volume_reply_failure(&request, &error);
        return volume_reply_success(&call);
}
