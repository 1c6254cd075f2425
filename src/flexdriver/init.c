/* SPDX-License-Identifier: Apache-2.0 */
/* init - print what this driver can do, with every capability. */
#include "privileges/init.h"
#include "flexdriver/flexdriver.h"
#include "process/program.h"
#include "volume/reply.h"

static const struct program program = {
        .usage = VERB_USAGE(init, INIT, "Print what the FlexVolume driver of this name can do."),
        .privileges = &PRIVILEGES,
};

int init_main(int argc, char **argv)
{
        static struct volume_request request = { .verb = VERB_INIT };
        static struct error error;

        volume_driver_name(argv[0], request.driver);
        if (program_begin(&program, argc, argv, &error) < 0)
                return volume_reply_failure(&request, &error);
        return volume_reply_init(request.driver);
}
