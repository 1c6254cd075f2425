/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/source.h"

#include "inject/request.h"

const struct source_kind *source_of(const struct request *request)
{
        switch (request->kind) {
        case REQUEST_MOUNT_BLOCK:
                return request->raw ? &source_raw : &source_block;
        case REQUEST_MOUNT_CONTAINER:
                return &source_container;
        case REQUEST_MOUNT_NFS:
                return &source_nfs;
        case REQUEST_MOUNT_TMPFS:
                return &source_tmpfs;
        case REQUEST_MOUNT_OVERLAY:
                return &source_overlay;
        default:
                return &source_bind;
        }
}
