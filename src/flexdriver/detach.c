/* SPDX-License-Identifier: Apache-2.0 */
/* detach NAME NODE - detach a volume from its node. */
#include "privileges/detach.h"
#include "process/program.h"
#include "volume/attach.h"
#include "volume/exec_helpers.h"
#include "volume/reply.h"
#include "volume/schema.h"

static const struct program program = {
        .usage = VERB_USAGE(detach, DETACH, "Detach a volume from this node, by its name alone."),
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
            volume_call_begin(&call, &request, VERB_DETACH, argc, argv, &error) < 0 ||
            volume_call_run(&call, volume_detach, &error) < 0)
                return volume_reply_failure(&request, &error);
        return volume_reply_success(&call);
}
