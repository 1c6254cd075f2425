/* SPDX-License-Identifier: Apache-2.0 */
/* kind_nfs.c - an NFS export, mounted for each pod from the node's network; nothing is attached. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>

#include "base/clock.h"
#include "base/text.h"
#include "mount/nfs.h"
#include "mount/nfs_options.h"
#include "pool/pool_nfs_share.h"
#include "state/policy.h"
#include "state/use_index.h"
#include "volume/call.h"
#include "volume/kind.h"

#define SHARE_OF_TIME 4 /* all but this part of a call's time is for finding the server */

static int parse(const struct volume_request *request, struct nfs_export *ret_export, struct error *error)
{
        const char *source;
        const char *server;
        const char *share;
        char path[PATH_MAX];
        int r;

        if ((r = volume_request_option(request, "source", &source, error)) < 0 ||
            (r = volume_request_option(request, "server", &server, error)) < 0 ||
            (r = volume_request_option(request, "share", &share, error)) < 0 ||
            (share == NULL && (r = volume_request_option(request, "path", &share, error)) < 0))
                return r;
        if (server != NULL && share != NULL) /* "export" means "/export", as in Kubernetes' example */
                r = snprintf(path, sizeof path, "%s%s", share[0] == '/' ? "" : "/", share) < (int)sizeof path
                            ? nfs_export_join(server, path, ret_export)
                            : -EINVAL;
        else if (source != NULL && server == NULL && share == NULL)
                r = nfs_export_parse(source, ret_export);
        else
                return fail_because(error, EINVAL, "check options", request->name,
                                    "the volume has no export; set \"server\" and \"share\", or \"source\" as "
                                    "\"host:/path\"");
        return r < 0 ? fail_because(error, EINVAL, "check options", request->name,
                                    "\"server\" must be a host name or address, and \"share\" a path on it")
                     : 0;
}

static int make(struct volume_call *call, struct error *error)
{
        static struct nfs_export export;
        int64_t time_ms = (int64_t)call->config.call_seconds * 1000;
        struct nfs_server_rule rule;
        struct nfs_mount mount = { .export = &export,
                                   .rule = &rule,
                                   .options = &call->request->mount_options,
                                   .read_only = call->request->read_only,
                                   .deadline_ms = clock_now_ms() + time_ms - time_ms / SHARE_OF_TIME };
        int r;

        if ((r = parse(call->request, &export, error)) < 0 ||
            (r = policy_server_check(&call->policy, export.host, /* open= */ true, &rule, error)) < 0)
                return r;
        /* volume-list and volume-delete ask for it as for one of a pool; longer than that is no volume's path */
        (void)text_copy(call->record.source, sizeof call->record.source, export.source);
        call->record.uses[0] = '\0';
        use_keys_add_named(call->record.uses, call->request->name);
        return nfs_mount_on_node(&mount, error);
}

/* Who may have the volume, its name and that of its pool decide, whose file names the server. */
static int mount_apart(struct volume_call *call, const struct provision_record *made, struct error *error)
{
        uint64_t attributes;
        int fd = pool_nfs_mount_volume(&call->config, made, &attributes, error);

        call->record.read_only = call->record.read_only || (attributes & MOUNT_ATTR_RDONLY) != 0;
        call->attributes = attributes & ~(uint64_t)MOUNT_ATTR_RDONLY;
        return fd;
}

static bool guess(const struct volume_request *request)
{
        return json_object_get(request->options, "server") != NULL &&
               json_object_get(request->options, "share") != NULL;
}

static const struct volume_option options[] = {
        { .key = "server", .help = "host name or address of the server" },
        { .key = "share", .help = "path of the export on the server; it may lack the first slash" },
        { .key = "path", .help = "the same as \"share\"" },
        { .key = "source", .help = "server and share in one, \"host:/path\"" },
        {},
};

const struct volume_kind kind_nfs = { VOLUME_KIND(nfs),   .needs = NEED(NFS), .any_filesystem = true,
                                      .options = options, .hints = nfs_hints, .harmless_options = nfs_harmless_options,
                                      .guess = guess,     .make = make,       .mount_apart = mount_apart };
