/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/kinds/device_mount.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/text.h"
#include "block/filesystem.h"
#include "inject/raw_grant.h"
#include "mount/identity.h"
#include "mount/superblock.h"

bool device_mount_never_writes(const char *fs_type)
{
        static const char *const never_written[] = { "erofs", "squashfs", "cramfs", "iso9660", "romfs", NULL };

        return text_among(fs_type, never_written);
}

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
                return fail_because(error, EINVAL, OPERATION_FSOPEN, fs_type,
                                    "%s is not a filesystem for a block device", fs_type);
        return 0;
}

static int create_mount(struct injection *injection, bool owned, bool read_only, struct error *error)
{
        cleanup_close int context_fd = owned ? superblock_open_owned(injection->container, injection->fs_type, error)
                                             : superblock_open(injection->fs_type, error);
        int fd;
        int r;

        if (context_fd < 0)
                return context_fd;
        /* after fsopen, which loads the module; the process that probes an image may say anything */
        if ((injection->request->fs_type != NULL || injection->part.size_bytes != 0) &&
            (r = check_type(injection->fs_type, error)) < 0)
                return r;
        /* the UUID in an image is its maker's choice: it keeps no filesystem that has it, too, from being mounted
         * (docs/KERNEL.md#copies-of-filesystems) */
        if (injection->part.size_bytes != 0 && strcmp(injection->fs_type, "xfs") == 0 &&
            (r = superblock_set(context_fd, "nouuid", NULL, error)) < 0)
                return r;
        if ((r = filesystem_check_alone(injection->fs_type, injection->device.path, error)) < 0 ||
            (r = superblock_create_on(context_fd, injection->fs_type, injection->device.path,
                                      &injection->request->options, read_only, error)) < 0 ||
            (r = filesystem_check_opened(injection->fs_type, injection->record.disk, injection->device.path, error)) <
                    0)
                return r;
        fd = superblock_mount(context_fd, injection->device.path, 0, error);
        if (fd < 0)
                return fd;
        injection->mount_fd = fd;
        return 0;
}

int device_mount_check_recorded(struct injection *injection, struct error *error)
{
        const struct mount_record *record = &injection->record;

        return raw_grant_check_none(injection->session->state_dir, record, record->disk, error);
}

int device_mount_find(struct injection *injection, struct error *error)
{
        const struct request *request = injection->request;
        int r = request->source[0] != '/'
                        ? 0
                        : injection_check_path(injection, request->source, !request->read_only, error);

        if (r < 0 || (r = block_device_find(request->source, &injection->device, error)) < 0)
                return r;
        (void)text_copy(injection->record.origin, sizeof injection->record.origin, injection->device.path);
        if ((r = injection_check_policy(injection, error)) < 0 || injection_policy(injection) == NULL)
                return r;
        return block_device_check_node(&injection->device, error);
}

int device_mount_make(struct injection *injection, bool owned, struct error *error)
{
        bool read_only = injection->request->read_only || device_mount_never_writes(injection->fs_type);
        struct mount_seen seen;
        int r;

        if (injection->device.read_only && !read_only)
                return fail_because(error, EROFS, OPERATION_FIND_DEVICE, injection->device.path,
                                    "the device is read-only");
        if ((r = device_mount_check_recorded(injection, error)) < 0)
                return r;
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
        if (major(seen.device) != 0 && seen.device != injection->record.disk)
                return fail_because(error, ESTALE, OPERATION_FSCONFIG, injection->device.path,
                                    "the device node was replaced by another");
        return 0;
}
