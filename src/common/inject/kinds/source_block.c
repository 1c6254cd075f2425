/* SPDX-License-Identifier: Apache-2.0 */
/* source_block.c - a filesystem on a block device of the node as the source of a mount. */
#include <errno.h>
#include <string.h>
#include <sys/mount.h>

#include "base/json_value.h"
#include "base/text.h"
#include "block/device.h"
#include "inject/injection.h"
#include "inject/kinds/device_mount.h"
#include "inject/kinds/source_raw.h"
#include "inject/request/request_keys.h"
#include "inject/request/source.h"

static int find_device(struct injection *injection, struct error *error)
{
        const struct request *request = injection->request;
        int r = device_mount_find(injection, error);

        if (r < 0)
                return r;
        injection->directory = true;
        if (request->fs_type != NULL) {
                (void)text_copy(injection->fs_type, sizeof injection->fs_type, request->fs_type);
                return 0;
        }
        return block_device_fs_type(&injection->device, injection->fs_type, error);
}

static int identify(const struct injection *injection, char *ret_identity, struct error *error)
{
        int r = block_device_uuid(&injection->device, ret_identity, error);

        if (r < 0 || ret_identity[0] != '\0')
                return r;
        return fail_because(error, EOPNOTSUPP, "write record", injection->request->source,
                            "\"persist\" needs a filesystem with a UUID, or a volume (mount-volume): after a reboot "
                            "another disk may have the name");
}

static int check(struct request *request, struct error *error)
{
        if (request->source[0] != '/' && strchr(request->source, '=') == NULL)
                return json_value_refuse(error, "source", "must be a device's absolute path, UUID=... or LABEL=...");
        if (!request->raw)
                return 0;
        request->source_kind = &source_raw;
        return source_raw_check(request, error);
}

static const struct key keys[] = {
        { REQUEST_KEY_CONTAINER(1) },
        { "source", 1, 1, KEY_STRING, .pattern = "^/|=", .positional = 1, REQUEST_FIELD(source),
          .help = "path of a block device, or UUID=, LABEL=, PARTUUID= or PARTLABEL= and its value" },
        { REQUEST_KEY_TARGET },
        { "raw", 1, 0, KEY_BOOLEAN, REQUEST_FIELD(raw),
          .help = "true: the device itself, usable by the container's root; the target is a file" },
        { REQUEST_KEY_FS_TYPE },
        { REQUEST_KEY_READ_ONLY },
        { REQUEST_KEY_FS_OPTIONS },
        { REQUEST_KEY_FALLBACK("none") },
        { REQUEST_KEY_CACHE },
        REQUEST_KEYS_OF_MOUNT(request_ids_words),
};
REQUEST_KEY_TABLE(source_block_keys, keys);

const struct source_kind source_block = {
        .word = "block",
        .needs = NEED(USER_NAMESPACES),
        .keys = &source_block_keys,
        .hints = block_hints,
        .oci_others = true,
        .oci_source = "source",
        .foreign = true,
        .shared = true, /* by all that mount the same device, also later */
        .ownable = true,
        .remap = REMAP_ASKED,
        .open_text = SOURCE_FINDS_DEVICE,      /* open, libblkid */
        .make_text = SOURCE_MOUNTS_FILESYSTEM, /* fsopen, fsconfig, fsmount */
        .check = check,
        .open = find_device,
        .identify = identify,
        .make = device_mount_make,
        .check_recorded = device_mount_check_recorded,
};
