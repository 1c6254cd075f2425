/* SPDX-License-Identifier: Apache-2.0 */
/* attach JSON NODE - attach a volume to a node. */
#include "privileges/attach.h"
#include "flexdriver/flexdriver.h"
#include "volume/exec_helpers.h"
#include "volume/reply.h"
#include "volume/volume.h"

static const struct program program = {
        .usage = VERB_USAGE(attach, ATTACH,
                            "Attach a volume, and print its device. For another node it changes nothing here."),
        .privileges = &PRIVILEGES,
        .takes_names = true,
        .rootless = true, /* volume_call_where() */
        .before_drop = volume_exec_helpers_begin,
};

int attach_main(int argc, char **argv)
{
        return volume_verb_main(&program, VERB_ATTACH, volume_attach, argc, argv);
}
