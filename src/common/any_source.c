/* SPDX-License-Identifier: Apache-2.0 */
#include "any_source.h"

#include "bind_source.h"
#include "block_source.h"
#include "container_source.h"
#include "nfs_source.h"
#include "overlay_source.h"
#include "raw_source.h"
#include "tmpfs_source.h"

const struct source_kind *any_source(const struct request *request)
{
        switch (request->kind) {
        case REQUEST_MOUNT_BLOCK:
                return request->raw ? &raw_source : &block_source;
        case REQUEST_MOUNT_CONTAINER:
                return &container_source;
        case REQUEST_MOUNT_NFS:
                return &nfs_source;
        case REQUEST_MOUNT_TMPFS:
                return &tmpfs_source;
        case REQUEST_MOUNT_OVERLAY:
                return &overlay_source;
        default:
                return &bind_source;
        }
}
