/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/kind_nfs.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "mount/nfs.h"
#include "process/log.h"
#include "state/policy.h"

#define SHARE_OF_TIME 4 /* of a call's time, this part less is for finding the server */

static int parse(const struct volume_request *request, struct nfs_export *ret_export, struct error *error)
{
        const char *source;
        const char *server;
        const char *share;
        int r;

        if ((r = volume_request_option(request, "source", &source, error)) < 0 ||
            (r = volume_request_option(request, "server", &server, error)) < 0 ||
            (r = volume_request_option(request, "share", &share, error)) < 0 ||
            (share == NULL && (r = volume_request_option(request, "path", &share, error)) < 0))
                return r;
        if (server != NULL && share != NULL)
                r = nfs_export_join(server, share, ret_export);
        else if (source != NULL && server == NULL && share == NULL)
                r = nfs_export_parse(source, ret_export);
        else
                return fail_because(error, EINVAL, "check options", request->name,
                                    "the volume does not say its \"server\" and \"share\", or its \"source\", "
                                    "\"host:/path\"");
        return r < 0 ? fail_because(error, EINVAL, "check options", request->name,
                                    "the volume's server must be a host's name or address, and its share a path of its")
                     : 0;
}

static int make(struct volume_call *call, struct error *error)
{
        static struct nfs_export export; /* static, for its size */
        int64_t time_ms = (int64_t)call->config.call_seconds * 1000;
        struct nfs_mount mount = { .export = &export,
                                   .options = &call->request->mount_options,
                                   .read_only = call->request->read_only,
                                   .deadline_ms = clock_now_ms() + time_ms - time_ms / SHARE_OF_TIME };
        int fd;
        int r;

        if ((r = parse(call->request, &export, error)) < 0 ||
            (r = policy_check_server(&call->policy, export.host, /* open= */ true, error)) < 0 ||
            (r = nfs_mount_find(&mount, error)) < 0)
                return r;
        fd = nfs_mount_make(&mount, /* owned= */ false, error);
        if (fd != -ECONNREFUSED)
                return fd;
        /* the server took a connection: who did not is its port mapper, or the node's own, which locks of version 3
         * want */
        mount.no_locks = true;
        fd = nfs_mount_make(&mount, /* owned= */ false, error);
        if (fd >= 0 && strcmp(mount.version, "3") == 0)
                log_say("mounted %s without locks (nolock): this node has no rpcbind", export.source);
        return fd;
}

const struct volume_kind kind_nfs = { .word = "nfs", .harmless_options = nfs_harmless_options, .make = make };
