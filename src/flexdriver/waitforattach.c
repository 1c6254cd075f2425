/* SPDX-License-Identifier: Apache-2.0 */
/* waitforattach DEVICE JSON - wait for the volume's device, on its node. */
#include "privileges/waitforattach.h"
#include "flexdriver/flexdriver.h"
#include "volume/exec_helpers.h"
#include "volume/reply.h"
#include "volume/volume.h"

static const struct program program = {
        .usage = VERB_USAGE(waitforattach, WAITFORATTACH,
                            "Wait until a volume is attached to this node; attach it if it is not."),
        .privileges = &PRIVILEGES,
        .takes_names = true,
        .before_drop = volume_exec_helpers_begin,
};

int waitforattach_main(int argc, char **argv)
{
        return volume_verb_main(&program, VERB_WAITFORATTACH, volume_wait_for_attach, argc, argv);
}
