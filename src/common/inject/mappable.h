/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mappable.h - remap-mount: its request, what it does, its replies. A directory of the node, or an export of an NFS
 * server, appears on a directory as a FUSE filesystem that remap-daemon serves and whose mounts the kernel can id-map.
 */
#ifndef FLEXGRAFT_INJECT_MAPPABLE_H
#define FLEXGRAFT_INJECT_MAPPABLE_H

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"
#include "base/schema.h"
#include "mount/options.h"
#include "mount/remap_settings.h"

/* What the name of a source that is an export begins with: "nfs:host:/path". */
#define MAPPABLE_NFS "nfs:"

extern const struct schema mappable_schema;

struct mappable_request {
        json_t *json;       /* all of it; owned */
        const char *source; /* a path, or MAPPABLE_NFS and an export */
        const char *target;
        struct mount_options options; /* fs_options: those of nfs(5) */
        bool read_only;
        enum remap_cache cache;
        int timeout_seconds;
};

/* mappable_parse() - Errors: OPERATION_PARSE. */
int mappable_parse(int argc, char **argv, struct mappable_request *ret_request, struct error *error);

/*
 * mappable_mount() - ensure that it is mounted: where it is already nothing is done, and where its daemon is dead it is
 * mounted anew. It ends with the last mount of it, by umount(8). An export is mounted on nothing but it, from the node's
 * network, and ends with it.
 *
 * Needs:   CAP_SYS_ADMIN, CAP_DAC_READ_SEARCH, and the helper process (remap_begin_mappable()).
 * Gives:   ret_reply, owned by the caller.
 * Errors:  EBUSY something else is mounted on the target; ENOTDIR; those of id_mappable_serve() and nfs_mount_on_node();
 *          ETIMEDOUT.
 */
int mappable_mount(const struct mappable_request *request, json_t **ret_reply, struct error *error);

/*
 * mappable_mount_words() - the same, where nobody wants a reply. Takes: options, of which fs_options count. Gives:
 * ret_already: it was mounted before.
 */
int mappable_mount_words(const char *source, const char *target, bool read_only, const struct mount_options *options,
                         bool *ret_already, struct error *error);

/* mappable_check_source() - that it is an absolute path, or an export. Errors: OPERATION_PARSE. */
int mappable_check_source(const char *source, struct error *error);

/* mappable_say_failure() - print the reply. Returns the exit status. */
int mappable_say_failure(const struct mappable_request *request, const struct error *error);

#endif
