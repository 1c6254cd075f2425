/* SPDX-License-Identifier: Apache-2.0 */
/* getvolumename JSON - print the name of a volume. */
#include "privileges/getvolumename.h"
#include "flexdriver/flexdriver.h"
#include "process/program.h"
#include "volume/call.h"
#include "volume/reply.h"

static const struct program program = {
        .usage =
                VERB_USAGE(getvolumename, GETVOLUMENAME, "Print the name of the volume: the one that kubelet gave it."),
        .privileges = &PRIVILEGES,
        .takes_names = true,
};

int getvolumename_main(int argc, char **argv)
{
        static struct volume_request request;
        static struct volume_call call;
        static struct error error;

        if (program_begin(&program, argc, argv, &error) < 0 ||
            volume_call_begin(&call, &request, VERB_GETVOLUMENAME, argc, argv, &error) < 0 ||
            volume_call_name(&call, &error) < 0)
                return volume_reply_failure(&request, &error);
        return volume_reply_success(&call);
}
