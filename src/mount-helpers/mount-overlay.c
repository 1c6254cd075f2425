/* SPDX-License-Identifier: Apache-2.0 */
/* mount-overlay REQUEST - an overlay of directories of the node, into a running container. */
#include "privileges/mount-overlay.h"
#include "daemon/remap.h"
#include "inject/helper_main.h"

static const struct source_kind *const sources[] = { &source_overlay, NULL };

static const struct helper helper = {
        .program = { .usage = { .name = "mount-overlay",
                                .about = "Mount an overlay of directories of this node inside a container that is "
                                         "already running. Owners in the layers are stored as the container counts "
                                         "them: 0 is its root.",
                                .schema = HELPER_SCHEMA(source_overlay_keys, REPLIES_MOUNT),
                                .examples = "Example: mount-overlay '{\"container\": \"web\", \"target\": \"/app\",\n"
                                            "                          \"lower\": [\"/srv/app/2\", \"/srv/app/1\"],\n"
                                            "                          \"upper\": \"/srv/web/upper\", \"work\": "
                                            "\"/srv/web/work\"}'\n" },
                     .privileges = &PRIVILEGES,
                     .before_drop = remap_begin_for },
        .kind = REQUEST_MOUNT,
        .sources = sources,
};

int main(int argc, char **argv)
{
        return helper_main(&helper, argc, argv);
}
