/* SPDX-License-Identifier: Apache-2.0 */
/* isattached JSON NODE - whether a volume is attached, by the kernel and not by its record. */
#include "privileges/isattached.h"
#include "flexdriver/flexdriver.h"
#include "volume/reply.h"
#include "volume/volume.h"

static const struct program program = {
        .usage = VERB_USAGE(isattached, ISATTACHED, "Print whether a volume is attached to a node."),
        .privileges = &PRIVILEGES,
        .takes_names = true,
        .rootless = true, /* volume_call_where() */
};

int isattached_main(int argc, char **argv)
{
        return volume_verb_main(&program, VERB_ISATTACHED, volume_is_attached, argc, argv);
}
