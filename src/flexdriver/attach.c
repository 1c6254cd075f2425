/* SPDX-License-Identifier: Apache-2.0 */
/* attach JSON NODE - attach a volume to a node. */
#include "privileges/attach.h"
#include "process/program.h"
#include "volume/attach.h"
#include "volume/exec_helpers.h"
#include "volume/reply.h"
#include "volume/schema.h"

static const struct program program = {
        .usage = VERB_USAGE(attach, ATTACH,
                            "Attach a volume, and print its device. For another node it changes nothing here."),
        .privileges = &PRIVILEGES,
        .takes_names = true,
        .before_drop = volume_exec_helpers_begin,
};

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
