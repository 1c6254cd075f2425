/* SPDX-License-Identifier: Apache-2.0 */
/* expandvolume JSON DIR NEW_SIZE OLD_SIZE - grow a volume's device. */
#include "privileges/expandvolume.h"
#include "process/program.h"
#include "volume/exec_helpers.h"
#include "volume/expand.h"
#include "volume/reply.h"
#include "volume/schema.h"

static const struct program program = {
        .usage = VERB_USAGE(expandvolume, EXPANDVOLUME,
                            "Grow a volume's image or device to NEW_SIZE bytes. It never shrinks."),
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
            volume_call_begin(&call, &request, VERB_EXPANDVOLUME, argc, argv, &error) < 0 ||
            volume_call_run(&call, volume_expand, &error) < 0)
                return volume_reply_failure(&request, &error);
        return volume_reply_success(&call);
}
