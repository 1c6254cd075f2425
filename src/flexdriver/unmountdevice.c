/* SPDX-License-Identifier: Apache-2.0 */
/* unmountdevice DIR - unstage it. */
#include "privileges/unmountdevice.h"
#include "process/program.h"
#include "volume/kind_kata.h"
#include "volume/reply.h"
#include "volume/schema.h"

static const struct program program = {
        .usage = VERB_USAGE(unmountdevice, UNMOUNTDEVICE, "Unmount whatever is mounted on DIR and below it."),
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
            volume_call_run(&call, kata_take_off, &error) < 0)
                return volume_reply_failure(&request, &error);
        return volume_reply_success(&call);
}
