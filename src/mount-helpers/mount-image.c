/* SPDX-License-Identifier: Apache-2.0 */
/* mount-image REQUEST - the filesystem in an image file of the node, into a running container. */
#include "privileges/mount-image.h"
#include "daemon/remap.h"
#include "inject/helper_main.h"

static const struct source_kind *const sources[] = { &source_image, NULL };

static const struct helper helper = {
        .program = { .usage = { .name = "mount-image",
                                .about = "Mount the filesystem in an image file of this node, or in a partition of "
                                         "it, inside a container that is already running.",
                                .schema = HELPER_SCHEMA(source_image_keys, REPLIES_MOUNT),
                                .examples = "Example:\n"
                                            "  mount-image '{\"container\": \"web\", \"source\": \"/srv/disk.img\",\n"
                                            "                \"target\": \"/data\", \"partition\": 2}'\n" },
                     .privileges = &PRIVILEGES,
                     .before_drop = remap_begin_for },
        .kind = REQUEST_MOUNT,
        .sources = sources,
};

int main(int argc, char **argv)
{
        return helper_main(&helper, argc, argv);
}
