/* SPDX-License-Identifier: Apache-2.0 */
/* source_bind.c - a file or directory of the node as the source of a mount: opened once, cloned. */
#include <errno.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "base/json_value.h"
#include "base/node_path.h"
#include "inject/injection.h"
#include "inject/request/request_keys.h"
#include "inject/request/source.h"
#include "mount/detached.h"

static int open_source(struct injection *injection, struct error *error)
{
        const char *source = injection->request->source;
        struct stat st;
        int r = injection_check_path(injection, source, !injection->request->read_only, error);

        if (r < 0)
                return r;
        injection->source_fd = node_path_open_mounted(source, injection->record.origin, error);
        if (injection->source_fd < 0)
                return injection->source_fd;
        if (fstat(injection->source_fd, &st) < 0)
                return fail(error, errno, "fstat", source);
        if (S_ISBLK(st.st_mode) && (injection->request->options.attr_clear & MOUNT_ATTR_NODEV) == 0)
                return fail_because(
                        error, EINVAL, OPERATION_OPEN_SOURCE, source,
                        "it is a block device: mount-block mounts its filesystem, or with \"raw\" gives the "
                        "device itself");
        if (S_ISCHR(st.st_mode) && (injection->request->options.attr_clear & MOUNT_ATTR_NODEV) == 0)
                return fail_because(error, EINVAL, OPERATION_OPEN_SOURCE, source,
                                    "it is a character device, which nodev keeps from being opened: say \"options\": "
                                    "\"dev\"; the container's device control group must allow it, too");
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

static const char *const ids[] = { "auto", "idmapped", "remap", "host", NULL };

static const struct key keys[] = {
        { REQUEST_KEY_CONTAINER(1) },
        { "source", 1, 1, KEY_PATH, .positional = 1, REQUEST_FIELD(source),
          .help = "absolute path on the node, of a file or a directory" },
        { REQUEST_KEY_TARGET },
        { REQUEST_KEY_READ_ONLY },
        { REQUEST_KEY_RECURSIVE },
        { REQUEST_KEY_OPTIONS },
        { REQUEST_KEY_FALLBACK("none") },
        { REQUEST_KEY_CACHE },
        REQUEST_KEYS_OF_MOUNT(ids),
};
REQUEST_KEY_TABLE(source_bind_keys, keys);

static const char *const oci_types[] = { "bind", NULL };
static const char *const oci_options[] = { "bind", "rbind", NULL };

const struct source_kind source_bind = {
        .word = "bind",
        .keys = &source_bind_keys,
        .oci_types = oci_types,
        .oci_options = oci_options,
        .oci_source = "source",
        .clones = true,
        .remap = REMAP_ASKED,
        .open_text = "open the source on the node", /* openat2 */
        .make_text = SOURCE_CLONES,                 /* open_tree */
        .check = check,
        .open = open_source,
        .make = make_clone,
};
