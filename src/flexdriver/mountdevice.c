/* SPDX-License-Identifier: Apache-2.0 */
/* mountdevice DIR DEVICE JSON - stage a volume: mount it once for this node. */
#include "privileges/mountdevice.h"
#include "flexdriver/flexdriver.h"
#include "volume/exec_helpers.h"
#include "volume/reply.h"
#include "volume/volume.h"

static const struct program program = {
        .usage =
                VERB_USAGE(mountdevice, MOUNTDEVICE,
                           "Mount a volume on DIR, for all pods of this node. A blank device gets a filesystem first."),
        .privileges = &PRIVILEGES,
        .takes_names = true,
        .before_drop = volume_exec_helpers_begin,
};

int mountdevice_main(int argc, char **argv)
{
        return volume_verb_main(&program, VERB_MOUNTDEVICE, volume_stage, argc, argv);
}
