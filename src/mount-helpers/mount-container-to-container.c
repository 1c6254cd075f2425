/* SPDX-License-Identifier: Apache-2.0 */
/* mount-container-to-container REQUEST - a file or directory of one running container, into another. */
#include "privileges/mount-container-to-container.h"
#include "daemon/remap.h"
#include "inject/helper_main.h"

static const struct source_kind *const sources[] = { &source_container, NULL };

static const struct helper helper = {
        .program = { .usage = { .name = "mount-container-to-container",
                                .about = "Mount a file or directory of one running container inside another, with its "
                                         "owners translated where the two have different user namespaces.",
                                .schema = HELPER_SCHEMA(source_container_keys, REPLIES_MOUNT),
                                .examples = "Example:\n"
                                            "  mount-container-to-container '{\"from\": {\"container\": \"db\", "
                                            "\"path\": \"/run/db\"},\n"
                                            "                                 \"to\": {\"container\": \"web\", "
                                            "\"path\": \"/run/db\"}}'\n" },
                     .privileges = &PRIVILEGES,
                     .before_drop = remap_begin_for },
        .kind = REQUEST_MOUNT,
        .sources = sources,
};

int main(int argc, char **argv)
{
        return helper_main(&helper, argc, argv);
}
