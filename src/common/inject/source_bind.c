/* SPDX-License-Identifier: Apache-2.0 */
/* source_bind.c - a file or directory of the node as the source of a mount: opened once, cloned. */
#include <errno.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "base/json_value.h"
#include "base/node_path.h"
#include "inject/injection.h"
#include "inject/source.h"
#include "mount/detached.h"

static int open_source(struct injection *injection, struct error *error)
{
        const char *source = injection->request->source;
        struct stat st;

        injection->source_fd = node_path_open(source, injection->record.origin, error);
        if (injection->source_fd < 0)
                return injection->source_fd;
        if (fstat(injection->source_fd, &st) < 0)
                return fail(error, errno, "fstat", source);
        if (S_ISBLK(st.st_mode) && (injection->request->options.attr_clear & MOUNT_ATTR_NODEV) == 0)
                return fail_because(
                        error, EINVAL, "open source", source,
                        "it is a block device: mount-block mounts its filesystem, or with \"raw\" gives the "
                        "device itself");
        injection->directory = S_ISDIR(st.st_mode);
        return injection_check_policy(injection, error);
}

static int make_clone(struct injection *injection, bool owned, struct error *error)
{
        (void)owned; /* never true: not ownable */
        injection->mount_fd = detached_mount_clone(injection->source_fd, injection->request->source,
                                                   injection->request->recursive, error);
        return injection->mount_fd < 0 ? injection->mount_fd : 0;
}

static int check(struct request *request, struct error *error)
{
        if (request->source[0] != '/')
                return json_value_refuse(error, "source", "must be an absolute path of the node");
        return 0;
}

static const char *const oci_types[] = { "bind", NULL };

const struct source_kind source_bind = {
        .word = "bind",
        .request = REQUEST_MOUNT_BIND,
        .oci_types = oci_types,
        .oci_source = "source",
        .clones = true,
        .remap = REMAP_ASKED,
        .open_step = STEP_OPEN_SOURCE,
        .make_step = STEP_CLONE,
        .check = check,
        .open = open_source,
        .make = make_clone,
};
