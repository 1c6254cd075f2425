/* SPDX-License-Identifier: Apache-2.0 */
/* mountdevice DIR DEVICE JSON - stage a volume: mount it once for this node. */
#include "privileges/mountdevice.h"
#include "process/program.h"
#include "volume/exec_helpers.h"
#include "volume/reply.h"
#include "volume/schema.h"
#include "volume/stage.h"

static const struct program program = {
        .usage =
                VERB_USAGE(mountdevice, MOUNTDEVICE,
                           "Mount a volume on DIR, for all pods of this node. A blank device gets a filesystem first."),
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
            volume_call_begin(&call, &request, VERB_MOUNTDEVICE, argc, argv, &error) < 0 ||
            volume_call_run(&call, volume_stage, &error) < 0)
                return volume_reply_failure(&request, &error);
        return volume_reply_success(&call);
}
