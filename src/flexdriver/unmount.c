/* SPDX-License-Identifier: Apache-2.0 */
/* unmount DIR - unmount a volume from a pod. */
#include "privileges/unmount.h"
#include "flexdriver/flexdriver.h"
#include "volume/exec_helpers.h"
#include "volume/reply.h"
#include "volume/volume.h"

static const struct program program = {
        .usage = VERB_USAGE(unmount, UNMOUNT, "Unmount everything on DIR and below it."),
        .privileges = &PRIVILEGES,
        .takes_names = true,
        .before_drop = volume_exec_helpers_begin,
};

int unmount_main(int argc, char **argv)
{
        return volume_verb_main(&program, VERB_UNMOUNT, volume_unpublish, argc, argv);
}
