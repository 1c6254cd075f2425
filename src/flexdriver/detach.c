/* SPDX-License-Identifier: Apache-2.0 */
/* detach NAME NODE - detach a volume from its node. */
#include "privileges/detach.h"
#include "flexdriver/flexdriver.h"
#include "volume/exec_helpers.h"
#include "volume/reply.h"
#include "volume/volume.h"

static const struct program program = {
        .usage = VERB_USAGE(detach, DETACH, "Detach a volume from this node, by its name alone."),
        .privileges = &PRIVILEGES,
        .takes_names = true,
        .rootless = true, /* volume_call_where() */
        .before_drop = volume_exec_helpers_begin,
};

int detach_main(int argc, char **argv)
{
        return volume_verb_main(&program, VERB_DETACH, volume_detach, argc, argv);
}
