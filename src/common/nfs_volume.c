/* SPDX-License-Identifier: Apache-2.0 */
#include "nfs_volume.h"

#include <errno.h>

#include "nfs_mount.h"
#include "policy.h"
#include "worker.h"

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
                                   .deadline_ms = worker_now_ms() + time_ms - time_ms / SHARE_OF_TIME };
        int r;

        if ((r = parse(call->request, &export, error)) < 0 ||
            (r = policy_check_server(&call->policy, export.host, /* open= */ true, error)) < 0 ||
            (r = nfs_mount_find(&mount, error)) < 0)
                return r;
        return nfs_mount_make(&mount, /* owned= */ false, error);
}

const struct volume_kind nfs_volume = { .word = "nfs", .make = make };
