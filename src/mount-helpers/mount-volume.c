/* SPDX-License-Identifier: Apache-2.0 */
/* mount-volume REQUEST - a volume by its name, into a running container. */
#include "privileges/mount-volume.h"
#include "inject/helper_main.h"
#include "named/batch_begin.h"

static const struct source_kind *const sources[] = { &source_volume, NULL };

static const struct helper helper = {
        .program = { .usage = { .name = "mount-volume",
                                .about = "Mount a volume of volume-create, by its name, inside a container that is "
                                         "already running. The volume is attached to this node if it is not yet, gets "
                                         "a filesystem if it is blank, and is mounted once for all containers. "
                                         "mount-remove detaches it after the last of them.",
                                .options = usage_of_long,
                                .schema = HELPER_SCHEMA(source_volume_keys, REPLIES_SWITCH),
                                .examples = "Example:\n"
                                            "  mount-volume '{\"container\": \"web\", \"volume\": \"db\", "
                                            "\"target\": \"/data\"}'\n" },
                     .privileges = &PRIVILEGES,
                     .before_drop = batch_begin_for_volume },
        .kind = REQUEST_MOUNT,
        .releaser = &named_releaser,
        .sources = sources,
};

int main(int argc, char **argv)
{
        return helper_main(&helper, argc, argv);
}
