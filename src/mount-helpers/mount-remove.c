/* SPDX-License-Identifier: Apache-2.0 */
/* mount-remove REQUEST - remove a mount that flexgraft put into a container, and nothing else. */
#include "privileges/mount-remove.h"
#include "inject/helper_main.h"
#include "named/batch_begin.h"

static const struct helper helper = {
        .program = { .usage = { .name = "mount-remove",
                                .about = "Remove a mount that flexgraft put into a container, and the directories it "
                                         "made for it. The last mount of a volume by name detaches the volume. What is "
                                         "gone already is a success.",
                                .schema = HELPER_SCHEMA(request_remove_keys, REPLIES_REMOVE),
                                .examples =
                                        "Example: mount-remove '{\"container\": \"web\", \"target\": \"/data\"}'\n" },
                     .privileges = &PRIVILEGES,
                     .before_drop = named_releaser_begin },
        .kind = REQUEST_MOUNT_REMOVE,
        .releaser = &named_releaser,
};

int main(int argc, char **argv)
{
        return helper_main(&helper, argc, argv);
}
