/* SPDX-License-Identifier: Apache-2.0 */
/* isattached JSON NODE - whether a volume is attached, by the kernel and not by its record. */
#include "privileges/isattached.h"
#include "process/program.h"
#include "volume/attach.h"
#include "volume/reply.h"
#include "volume/schema.h"

static const struct program program = {
        .usage = VERB_USAGE(isattached, ISATTACHED, "Print whether a volume is attached to a node."),
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
