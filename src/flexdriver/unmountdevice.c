/* SPDX-License-Identifier: Apache-2.0 */
/* unmountdevice DIR - unmount a volume from this node. */
#include "privileges/unmountdevice.h"
#include "flexdriver/flexdriver.h"
#include "volume/reply.h"
#include "volume/volume.h"

static const struct program program = {
        .usage = VERB_USAGE(unmountdevice, UNMOUNTDEVICE, "Unmount everything on DIR and below it."),
        .privileges = &PRIVILEGES,
        .takes_names = true,
};

int unmountdevice_main(int argc, char **argv)
{
        return volume_verb_main(&program, VERB_UNMOUNTDEVICE, volume_unstage, argc, argv);
}
