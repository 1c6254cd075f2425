/* SPDX-License-Identifier: Apache-2.0 */
/* expandfs JSON DEVICE DIR NEW_SIZE OLD_SIZE - grow the filesystem of a volume while it is mounted. */
#include "privileges/expandfs.h"
#include "flexdriver/flexdriver.h"
#include "volume/exec_helpers.h"
#include "volume/reply.h"
#include "volume/volume.h"

static const struct program program = {
        .usage = VERB_USAGE(expandfs, EXPANDFS,
                            "Grow a volume's device to NEW_SIZE bytes, and the filesystem mounted on DIR to the size "
                            "of the device."),
        .privileges = &PRIVILEGES,
        .takes_names = true,
        .before_drop = volume_exec_helpers_begin,
};

int expandfs_main(int argc, char **argv)
{
        return volume_verb_main(&program, VERB_EXPANDFS, volume_expand_fs, argc, argv);
}
