/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/reply.h"

#include <stddef.h>

#define CONTAINER(object) "{" object "container.id|" object "container.pid}"

static const struct people_column open[] = {
        { "PID", "pid" }, { "COMMAND", "command" }, { "HOW", "how" }, { "VOLUME", "volume" }, {}
};

static const struct people_column steps[] = { { "ENSURE", "ensure" }, { "IF A LATER STEP FAILS", "undo" }, {} };

const struct people_form inject_people[] = {
        { .when = "mount.id,!mount.alreadyMounted,!mount.replaced",
          .line = "mounted {mount.source} on {mount.target} in " CONTAINER("mount.") ": {mount.options}; owners: "
                                                                                     "{mount.idMapping}" },
        { .when = "mount.replaced",
          .line = "replaced {mount.target} in " CONTAINER("mount.") " by {mount.source}: {mount.options}; owners: "
                                                                    "{mount.idMapping}" },
        { .when = "mount.alreadyMounted",
          .line = "{mount.source} is on {mount.target} in " CONTAINER("mount.") " already: {mount.options}" },
        { .when = "mount.stillOpen", .line = "processes that still have files of the replaced volume open:" },
        { .rows = "mount.stillOpen", .columns = open },
        { .when = "mount.stillOpenMore", .line = "there may be more of them" },
        { .when = "mount.stillAttached", .line = "{mount.hint}" },
        { .rows = "mounts",
          .when = "id,!alreadyMounted",
          .line = "mounted {source} on {target} in " CONTAINER("") ": {options}; owners: {idMapping}" },
        { .rows = "mounts",
          .when = "id,alreadyMounted",
          .line = "{source} is on {target} in " CONTAINER("") " already: {options}" },
        { .when = "removed,!alreadyRemoved", .line = "removed {removed.target|removed.id}" },
        { .when = "removed,alreadyRemoved", .line = "nothing to remove: {removed.target|removed.id} is gone already" },
        { .when = "stillReachable", .line = "{hint}" },
        { .when = "dryRun,alreadyMounted", .line = "nothing would change: it is mounted already" },
        { .when = "dryRun,alreadyRemoved", .line = "nothing would change: it is gone already" },
        { .rows = "mounts", .when = "plan,!alreadyMounted", .line = "would mount on {target}" },
        { .rows = "mounts", .when = "plan,alreadyMounted", .line = "nothing would change on {target}" },
        { .rows = "plan", .columns = steps },
        {},
};
