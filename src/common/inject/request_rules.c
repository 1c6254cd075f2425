/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/request_rules.h"

#include <errno.h>
#include <string.h>
#include <sys/mount.h>

#include "base/json_value.h"
#include "inject/request_keys.h"
#include "inject/source.h"

/* What can be said only once every key is known. Also fills in what follows from them. */
int request_rules_apply(struct request *request, struct error *error)
{
        const struct source_kind *kind = request->source_kind;
        int r = request_keys_check(request, error);

        if (r < 0)
                return r;
        if (!request->has_container) /* every key that names it is there, but a side */
                return json_value_refuse(error, "to", "has no \"container\"");
        if (kind->clones && request->options.fs_count > 0)
                return fail_because(error, EINVAL, OPERATION_PARSE, "options",
                                    "options: \"%.*s\" is an option of a filesystem, and a bind mounts none",
                                    (int)strcspn(request->options.fs_options[0], "="), request->options.fs_options[0]);
        if (!kind->clones && request->options.recursive)
                return json_value_refuse(error, "options", "\"rbind\" is for mount-bind");
        if (kind->check != NULL)
                r = kind->check(request, error);
        if (r == 0 && request->read_only)
                r = mount_options_add(&request->options, "ro", error);
        request->read_only = request->options.read_only;
        request->recursive = request->recursive || request->options.recursive;
        mount_options_default(&request->options);
        return r;
}
