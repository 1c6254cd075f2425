/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/volume.h"

#include "volume/reply.h"

int volume_verb_main(const struct program *program, enum verb verb, volume_function *function, int argc, char **argv)
{
        static struct volume_request request;
        static struct volume_call call;
        static struct error error;

        if (program_begin(program, argc, argv, &error) < 0 ||
            volume_call_begin(&call, &request, verb, argc, argv, &error) < 0 ||
            volume_call_run(&call, function, &error) < 0)
                return volume_reply_failure(&request, &error);
        return volume_reply_success(&call);
}
