/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/device_filesystem.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/text.h"
#include "block/filesystem.h"
#include "mount/superblock.h"
#include "process/log.h"

/*
 * Whether the image behind the device is on the same filesystem as the records: then a record that is written before the
 * image reaches the disk before it, too.
 */
static bool shares_disk(const struct volume_call *call)
{
        struct stat image;
        struct stat record;

        return !call->kind->node_device && stat(call->record.source, &image) == 0 &&
               fstat(call->state.dir_fd, &record) == 0 && image.st_dev == record.st_dev;
}

/* How durable the record must be that says whether mkfs runs, before mkfs or a pod writes to the device. */
static enum file_durability durability(const struct volume_call *call)
{
        return shares_disk(call) ? FILE_ORDERED : FILE_DURABLE;
}

/* A killed mkfs may leave something that looks like a filesystem. So the record says that it runs, also over a power cut,
 * until it has ended. */
static int format(struct volume_call *call, const struct block_device *device, const char *type, struct error *error)
{
        const char *preallocate;
        int r;

        if (call->request->read_only)
                return fail_because(error, EROFS, "make filesystem", device->path,
                                    "the device is blank; a read-only volume is not formatted");
        if ((r = volume_request_option(call->request, "preallocate", &preallocate, error)) < 0)
                return r;
        if ((r = call->kind->identify(call, call->record.formatting, error)) < 0 ||
            (r = volume_call_save(call, durability(call), error)) < 0)
                return r;
        /* a virtual machine maps its image */
        if (call->kind->offset_bytes > 0 || (call->kind->direct && block_device_is_dax(device)))
                return filesystem_make_direct(device, type, call->config.command_seconds, error);
        return filesystem_make(device, type, preallocate != NULL && strcmp(preallocate, "true") == 0,
                               call->config.command_seconds, error);
}

int device_filesystem_unmake(const struct volume_call *call, struct error *error)
{
        char identity[VOLUME_IDENTITY_SIZE];
        struct block_device device;
        int r;

        if (call->record.formatting[0] == '\0')
                return 0;
        volume_call_device(call, &device);
        if ((r = call->kind->identify(call, identity, error)) < 0)
                return r;
        return filesystem_unmake(&device, strcmp(identity, call->record.formatting) == 0, error);
}

/* Gives: ret_type, and ret_formatted: the record must say so, durably, before the filesystem is used. */
static int prepare(struct volume_call *call, const struct block_device *device, char *ret_type, bool *ret_formatted,
                   struct error *error)
{
        int r;

        *ret_formatted = call->record.formatting[0] != '\0';
        if ((r = device_filesystem_unmake(call, error)) < 0)
                return r;
        if (call->kind->is_untouched != NULL && call->kind->is_untouched(call) > 0)
                r = filesystem_choose(device, call->request->fs_type, ret_type, error);
        else
                r = filesystem_find(device, call->request->fs_type, ret_type, error);
        if (r < 0)
                return r;
        if (r == 0) {
                if ((r = format(call, device, ret_type, error)) < 0)
                        return r;
                *ret_formatted = true;
        } else if (!call->request->read_only &&
                   (r = filesystem_repair(device, ret_type, call->config.command_seconds, error)) < 0)
                return r;
        call->record.formatting[0] = '\0';
        return 0;
}

/* ext4 and xfs support it, unless "usage" is "FileIO" or there is a dax option. */
static bool is_direct(const struct volume_call *call, const struct block_device *device, const char *type)
{
        static const char *const types[] = { "ext4", "xfs", NULL };
        const struct mount_options *options = &call->request->mount_options;
        const char *usage = json_string_value(json_object_get(call->request->options, "usage"));

        for (size_t i = 0; i < options->fs_count; i++)
                if (text_starts(options->fs_options[i], "dax"))
                        return false;
        return call->kind->direct && text_among(type, types) && (usage == NULL || strcmp(usage, "FileIO") != 0) &&
               block_device_is_dax(device);
}

static int make_mount(const struct volume_call *call, const struct block_device *device, const char *type,
                      struct error *error)
{
        const struct mount_options *options = &call->request->mount_options;
        cleanup_close int context_fd = superblock_begin(type, error);
        int r;

        if (context_fd < 0)
                return context_fd;
        if (is_direct(call, device, type) && (r = superblock_set(context_fd, "dax", "always", error)) < 0)
                return r;
        r = superblock_create_on(context_fd, type, device->path, options, call->request->read_only, error);
        if (r < 0)
                return r;
        return superblock_mount(context_fd, device->path, (unsigned)(options->attr_set & ~(uint64_t)MOUNT_ATTR_RDONLY),
                                error);
}

static bool mend(const struct volume_call *call, const struct block_device *device, const char *type)
{
        struct error ignored; /* the failure to mount is the one to report */
        int r = filesystem_mend(device, type, call->config.command_seconds, &ignored);

        if (r < 0)
                log_say("%s cannot be repaired: %s", device->path, error_why(&ignored));
        return r == 0;
}

int device_filesystem_mount(struct volume_call *call, enum file_durability *ret_durability, struct error *error)
{
        char type[FILESYSTEM_TYPE_SIZE];
        cleanup_close int mount_fd = -EBADF;
        cleanup_close int held_fd = -EBADF;
        struct block_device device;
        bool formatted;
        int r;

        volume_call_device(call, &device);
        /* while it is open, the kernel keeps the pages that were read of it */
        held_fd = open(device.path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (call->kind->node_device && !call->request->read_only && (r = block_device_check_unused(&device, error)) < 0)
                return r;
        if ((r = prepare(call, &device, type, &formatted, error)) < 0)
                return r;
        mount_fd = make_mount(call, &device, type, error);
        if (mount_fd == -EBADMSG && !call->request->read_only && mend(call, &device, type))
                mount_fd = make_mount(call, &device, type, error);
        if (mount_fd < 0) {
                struct error ignored; /* the first failure is the one to report */

                if (formatted) /* it is made, though it cannot be mounted */
                        (void)volume_call_save(call, FILE_DURABLE, &ignored);
                return mount_fd;
        }
        call->record.read_only = call->request->read_only;
        *ret_durability = formatted ? durability(call) : FILE_ORDERED;
        return fd_take(&mount_fd);
}
