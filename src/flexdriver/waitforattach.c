/* SPDX-License-Identifier: Apache-2.0 */
/* waitforattach DEVICE JSON - wait for the volume's device, on its node. */
#include "privileges/waitforattach.h"
#include "process/program.h"
#include "volume/attach.h"
#include "volume/exec_helpers.h"
#include "volume/reply.h"
#include "volume/schema.h"

static const struct program program = {
        .usage = VERB_USAGE(waitforattach, WAITFORATTACH,
                            "Wait until a volume is attached to this node; attach it if it is not."),
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
            volume_call_begin(&call, &request, VERB_WAITFORATTACH, argc, argv, &error) < 0 ||
            volume_call_run(&call, volume_wait_for_attach, &error) < 0)
                return volume_reply_failure(&request, &error);
        return volume_reply_success(&call);
}
