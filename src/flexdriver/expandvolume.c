/* SPDX-License-Identifier: Apache-2.0 */
/* expandvolume JSON DIR NEW_SIZE OLD_SIZE - grow a volume's device. */
#include "privileges/expandvolume.h"
#include "flexdriver/flexdriver.h"
#include "volume/exec_helpers.h"
#include "volume/reply.h"
#include "volume/volume.h"

static const struct program program = {
        .usage = VERB_USAGE(expandvolume, EXPANDVOLUME,
                            "Grow a volume's image or device to NEW_SIZE bytes. It never shrinks."),
        .privileges = &PRIVILEGES,
        .takes_names = true,
        .before_drop = volume_exec_helpers_begin,
};

int expandvolume_main(int argc, char **argv)
{
        return volume_verb_main(&program, VERB_EXPANDVOLUME, volume_expand, argc, argv);
}
