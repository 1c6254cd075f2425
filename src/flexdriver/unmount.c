/* SPDX-License-Identifier: Apache-2.0 */
/* unmount DIR - unpublish it. */
#include "privileges/unmount.h"
#include "process/program.h"
#include "volume/ephemeral.h"
#include "volume/reply.h"
#include "volume/schema.h"
#include "volume/unpublish.h"

static const struct program program = {
        .usage = VERB_USAGE(unmount, UNMOUNT, "Unmount whatever is mounted on DIR and below it."),
        .privileges = &PRIVILEGES,
        .takes_names = true,
        .before_drop = ephemeral_begin_unmount,
};

int main(int argc, char **argv)
{
        static struct volume_request request;
        static struct volume_call call = { .ephemeral = &ephemeral };
        static struct error error;

        if (program_begin(&program, argc, argv, &error) < 0)
                return volume_reply_failure(&request, &error);
        call.provisions = ephemeral_begun();
        if (volume_call_begin(&call, &request, VERB_UNMOUNT, argc, argv, &error) < 0 ||
            volume_call_run(&call, volume_take_off, &error) < 0)
                return volume_reply_failure(&request, &error);
        return volume_reply_success(&call);
}
