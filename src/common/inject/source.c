/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/source.h"

#include "inject/source_bind.h"
#include "inject/source_block.h"
#include "inject/source_container.h"
#include "inject/source_nfs.h"
#include "inject/source_overlay.h"
#include "inject/source_raw.h"
#include "inject/source_tmpfs.h"

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
