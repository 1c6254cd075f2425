/* SPDX-License-Identifier: Apache-2.0 */
/* mount DIR JSON - mount a volume for a pod. */
#include "privileges/mount.h"
#include "process/program.h"
#include "volume/exec_helpers.h"
#include "volume/publish.h"
#include "volume/reply.h"
#include "volume/schema.h"

static const struct program program = {
        .usage = VERB_USAGE(mount, MOUNT, "Mount a volume on the directory DIR of a pod."),
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
            volume_call_begin(&call, &request, VERB_MOUNT, argc, argv, &error) < 0 ||
            volume_call_run(&call, volume_publish, &error) < 0)
                return volume_reply_failure(&request, &error);
        return volume_reply_success(&call);
}
