/* SPDX-License-Identifier: Apache-2.0 */
/* isattached JSON NODE - answer from the kernel, not from memory. */
#include "privileges/isattached.h"
#include "process/program.h"
#include "volume/attach.h"
#include "volume/reply.h"
#include "volume/schema.h"

static const struct program program = {
        .usage = VERB_USAGE(isattached, ISATTACHED, "Say whether a volume has its device on a node."),
        .privileges = &PRIVILEGES,
        .takes_names = true,
};

int main(int argc, char **argv)
{
        static struct volume_request request;
        static struct volume_call call;
        static struct error error;

        if (program_begin(&program, argc, argv, &error) < 0 ||
            volume_call_begin(&call, &request, VERB_ISATTACHED, argc, argv, &error) < 0 ||
            volume_call_run(&call, volume_is_attached, &error) < 0)
                return volume_reply_failure(&request, &error);
        return volume_reply_success(&call);
}
