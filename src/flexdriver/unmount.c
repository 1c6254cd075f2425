/* SPDX-License-Identifier: Apache-2.0 */
/* unmount DIR - unmount a volume from a pod. */
#include "privileges/unmount.h"
#include "process/program.h"
#include "volume/exec_helpers.h"
#include "volume/reply.h"
#include "volume/schema.h"
#include "volume/unpublish.h"

static const struct program program = {
        .usage = VERB_USAGE(unmount, UNMOUNT, "Unmount everything on DIR and below it."),
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
            volume_call_begin(&call, &request, VERB_UNMOUNT, argc, argv, &error) < 0 ||
            volume_call_run(&call, volume_unpublish, &error) < 0)
                return volume_reply_failure(&request, &error);
        return volume_reply_success(&call);
}
