/* SPDX-License-Identifier: Apache-2.0 */
/* kind_bind.c - a directory of the node, as far as policy.json allows it. */
#include <errno.h>
#include <string.h>

#include "base/fd.h"
#include "base/node_path.h"
#include "mount/detached.h"
#include "mount/identity.h"
#include "volume/call.h"
#include "volume/kind.h"

#define RECURSIVE "recursive" /* the option */

static int make(struct volume_call *call, struct error *error)
{
        const struct volume_request *request = call->request;
        cleanup_close int source_fd = -EBADF;
        const char *source;
        struct mount_seen seen;
        char path[PATH_MAX];
        bool recursive;
        int r;

        if ((r = volume_request_option(request, "source", &source, error)) < 0 ||
            (source == NULL && (r = volume_request_option(request, "path", &source, error)) < 0) ||
            (r = volume_request_flag(request, RECURSIVE, &recursive, error)) < 0 ||
            (r = volume_request_check_clone(request, kind_bind.word, error)) < 0)
                return r;
        if (source == NULL || source[0] != '/')
                return fail_because(error, EINVAL, OPERATION_OPEN_SOURCE, request->name,
                                    "the volume has no \"source\"; set it to an absolute path of the node");
        source_fd = node_path_open(source, path, error);
        /* policy first: a forbidden path is refused whether it exists or not */
        if ((source_fd >= 0 || source_fd == -ENOENT || source_fd == -ENOTDIR || source_fd == -EACCES) &&
            (r = policy_check_source(&call->policy, path, !request->read_only, error)) < 0)
                return r;
        if (source_fd < 0)
                return source_fd;
        if ((r = mount_see(source_fd, "", &seen)) < 0)
                return fail(error, -r, "statx", source);
        if (!seen.directory)
                return fail_because(error, ENOTDIR, OPERATION_OPEN_SOURCE, source,
                                    "%s is not a directory; a volume must be one", source);
        return detached_mount_clone(source_fd, source, request->mount_options.recursive || recursive, error);
}

static const struct volume_option options[] = {
        { .key = "source", .help = "directory of the node, an absolute path" },
        { .key = "path", .help = "the same as \"source\"" },
        { .key = RECURSIVE,
          .type = VOLUME_OPTION_BOOLEAN,
          .fallback = "false",
          .help = "true: with the mounts below it" },
        {},
};

const struct volume_kind kind_bind = { VOLUME_KIND(bind),     .options = options,     .needs_policy = true,
                                       .recurses = RECURSIVE, .any_filesystem = true, .make = make };
