/* SPDX-License-Identifier: Apache-2.0 */
/* mount DIR JSON - mount a volume for a pod. */
#include "privileges/mount.h"
#include "flexdriver/flexdriver.h"
#include "volume/exec_helpers.h"
#include "volume/reply.h"
#include "volume/volume.h"

static const struct program program = {
        .usage = VERB_USAGE(mount, MOUNT, "Mount a volume on the directory DIR of a pod."),
        .privileges = &PRIVILEGES,
        .takes_names = true,
        .before_drop = volume_exec_helpers_begin,
};

int mount_main(int argc, char **argv)
{
        return volume_verb_main(&program, VERB_MOUNT, volume_publish, argc, argv);
}
