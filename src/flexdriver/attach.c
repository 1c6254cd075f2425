/* SPDX-License-Identifier: Apache-2.0 */
/* attach JSON NODE - attach a volume to a node. */
#include "privileges/attach.h"
#include "process/program.h"
#include "volume/attach.h"
#include "volume/exec_helpers.h"
#include "volume/reply.h"

static const char help[] = "\n"
                           "Attach a volume, and print its device. For another node it changes nothing here.\n"
                           "\n" VERB_HELP;

static const struct program program = { .name = "attach",
                                        .help = help,
                                        .privileges = &PRIVILEGES,
                                        .arguments = "JSON NODE",
                                        .before_drop = volume_exec_helpers_begin };

int main(int argc, char **argv)
{
        static struct volume_request request;
        static struct volume_call call;
        static struct error error;

        if (program_begin(&program, argc, argv, &error) < 0 ||
            volume_call_begin(&call, &request, VERB_ATTACH, argc, argv, &error) < 0 ||
            volume_call_run(&call, volume_attach, &error) < 0)
                return volume_reply_failure(&request, &error);
        return volume_reply_success(&call);
}
