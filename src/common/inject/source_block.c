/* SPDX-License-Identifier: Apache-2.0 */
/* source_block.c - a filesystem on a block device of the node as the source of a mount. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/sysmacros.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/json_value.h"
#include "base/text.h"
#include "block/device.h"
#include "inject/injection.h"
#include "inject/source.h"
#include "mount/identity.h"
#include "mount/superblock.h"

static int find_device(struct injection *injection, struct error *error)
{
        const struct request *request = injection->request;
        int r = block_device_find(request->source, &injection->device, error);

        if (r < 0)
                return r;
        (void)text_copy(injection->record.origin, sizeof injection->record.origin, injection->device.path);
        if ((r = injection_check_policy(injection, error)) < 0 ||
            (injection->session->policy != NULL && (r = block_device_check_place(&injection->device, error)) < 0))
                return r;
        injection->directory = true;
        if (request->fs_type != NULL) {
                (void)text_copy(injection->fs_type, sizeof injection->fs_type, request->fs_type);
                return 0;
        }
        return block_device_fs_type(&injection->device, injection->fs_type, error);
}

/* Filesystems that are always read-only. */
static const char *const never_written[] = { "erofs", "squashfs", "cramfs", "iso9660", "romfs", NULL };

/* Whether the kernel mounts this type from a block device: its line in /proc/filesystems has no "nodev". */
static int check_type(const char *fs_type, struct error *error)
{
        char text[8192];
        char line[80];
        ssize_t n = file_read(AT_FDCWD, "/proc/filesystems", text, sizeof text);

        if (n < 0)
                return fail(error, (int)-n, "read", "/proc/filesystems");
        (void)snprintf(line, sizeof line, "\n\t%.64s\n", fs_type);
        if (strstr(text, line) == NULL)
                return fail_because(error, EINVAL, "fsopen", fs_type, "%s is not a filesystem for a block device",
                                    fs_type);
        return 0;
}

static int create_mount(struct injection *injection, bool owned, bool read_only, struct error *error)
{
        cleanup_close int context_fd = owned ? superblock_begin_owned(injection->container, injection->fs_type, error)
                                             : superblock_begin(injection->fs_type, error);
        int fd;
        int r;

        if (context_fd < 0)
                return context_fd;
        /* after fsopen, which loads the module */
        if (injection->request->fs_type != NULL && (r = check_type(injection->fs_type, error)) < 0)
                return r;
        if ((r = superblock_create_on(context_fd, injection->fs_type, injection->device.path,
                                      &injection->request->options, read_only, error)) < 0)
                return r;
        fd = superblock_mount(context_fd, injection->device.path, 0, error);
        if (fd < 0)
                return fd;
        injection->mount_fd = fd;
        return 0;
}

static int make_filesystem(struct injection *injection, bool owned, struct error *error)
{
        bool read_only = injection->request->read_only || text_among(injection->fs_type, never_written);
        struct mount_seen seen;
        int r;

        if (injection->device.read_only && !read_only)
                return fail_because(error, EROFS, "find device", injection->device.path, "the device is read-only");
        r = create_mount(injection, owned, read_only, error);
        if (r == -EBUSY && injection->request->read_only) /* mounted read-write elsewhere: share the superblock */
                r = create_mount(injection, owned, /* read_only= */ false, error);
        if (r == -EBUSY && error->kernel[0] == '\0')
                (void)text_copy(error->reason, sizeof error->reason,
                                "the device is in use: mounted with other options, or opened exclusively");
        if (r < 0)
                return r;

        /* the kernel resolved the path again: check that it is the same device (btrfs has device numbers of its own) */
        r = mount_see(injection->mount_fd, "", &seen);
        if (r < 0)
                return fail(error, -r, "statx", injection->device.path);
        if (major(seen.device) != 0 && seen.device != injection->device.number)
                return fail_because(error, ESTALE, "fsconfig", injection->device.path,
                                    "the device node was replaced by another");
        return 0;
}

static int check(struct request *request, struct error *error)
{
        if (request->source[0] != '/' && strchr(request->source, '=') == NULL)
                return json_value_refuse(error, "source", "must be a device's absolute path, UUID=... or LABEL=...");
        if (!request->raw)
                return 0;
        request->source_kind = &source_raw;
        if (request->fs_type != NULL)
                return json_value_refuse(error, "fsType", "a raw device is not mounted as a filesystem");
        if (request->options.fs_count > 0)
                return json_value_refuse(error, "options", "a raw device has no options of a filesystem");
        if ((request->options.attr_set & MOUNT_ATTR_NODEV) != 0)
                return json_value_refuse(error, "options", "\"nodev\" would make a raw device useless");
        if (request->ids != IDS_AUTO)
                return json_value_refuse(error, "ids",
                                         "a raw device has nothing to map: it belongs to the container's root");
        request->options.attr_clear |= MOUNT_ATTR_NODEV;
        return 0;
}

const struct source_kind source_block = {
        .word = "block",
        .request = REQUEST_MOUNT_BLOCK,
        .oci_others = true,
        .oci_source = true,
        .foreign = true,
        .ownable = true,
        .remap = REMAP_ASKED,
        .open_step = STEP_FIND_DEVICE,
        .make_step = STEP_CREATE_SUPERBLOCK,
        .check = check,
        .open = find_device,
        .make = make_filesystem,
};
