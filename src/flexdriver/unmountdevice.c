/* SPDX-License-Identifier: Apache-2.0 */
/* unmountdevice DIR - unmount a volume from this node. */
#include "privileges/unmountdevice.h"
#include "process/program.h"
#include "volume/reply.h"
#include "volume/schema.h"
#include "volume/unpublish.h"

static const struct program program = {
        .usage = VERB_USAGE(unmountdevice, UNMOUNTDEVICE, "Unmount everything on DIR and below it."),
        .privileges = &PRIVILEGES,
        .takes_names = true,
};

int main(int argc, char **argv)
{
        static struct volume_request request;
        static struct volume_call call;
        static struct error error;

        if (program_begin(&program, argc, argv, &error) < 0 ||
            volume_call_begin(&call, &request, VERB_UNMOUNTDEVICE, argc, argv, &error) < 0 ||
            volume_call_run(&call, volume_unstage, &error) < 0)
                return volume_reply_failure(&request, &error);
        return volume_reply_success(&call);
}
