/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/device_filesystem.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/text.h"
#include "block/filesystem.h"
#include "mount/superblock.h"
#include "pool/record.h"
#include "process/log.h"
#include "provision/disk_uses.h"
#include "state/uses.h"
#include "volume/kinds.h"
#include "volume/provisioned.h"
#include "volume/same.h"
#include "volume/used.h"

/* How durable the record must be that says whether mkfs runs, before mkfs or a pod writes to the device. */
static enum file_durability durability(const struct volume_call *call)
{
        return call->kind->node_device ? FILE_DURABLE : state_durability_before(&call->state, call->record.source);
}

/*
 * Before mkfs: what it writes into blocks that an image has already is on the disk without the journal, which keeps the order of
 * all else.
 */
static enum file_durability durability_before_mkfs(const struct volume_call *call)
{
        return call->kind->is_untouched != NULL && call->kind->is_untouched(call) <= 0 ? FILE_DURABLE
                                                                                       : durability(call);
}

/*
 * A killed mkfs may leave something that looks like a filesystem. So the record says that it runs, also over a power
 * cut, until it has ended.
 */
static int format(struct volume_call *call, const struct block_device *device, const char *type, struct error *error)
{
        bool preallocate;
        int r;

        if (call->request->read_only)
                return fail_because(
                        error, EROFS, "make filesystem", device->path,
                        "the device is blank; a read-only volume is not formatted: write to it first, from a pod or a "
                        "container that does not have it read-only (a claim for that is not ReadOnlyMany)");
        if ((r = volume_kind_flag(call->request, call->kind->allocates, &preallocate, error)) < 0)
                return r;
        if ((r = call->kind->identify(call, call->record.formatting, error)) < 0 ||
            (r = volume_call_save(call, durability_before_mkfs(call), error)) < 0)
                return r;
        if (call->kind->find_offset != NULL || (call->kind->direct && block_device_is_dax(device)))
                return filesystem_make_direct(device, type, call->config.command_seconds, error);
        return filesystem_make(device, type, preallocate, call->config.command_seconds, error);
}

/*
 * An image keeps its inode and its birth when its filesystem gets another device number, as after a reboot, and no other
 * one that is given its inode has the same birth. Records of earlier versions, and filesystems that tell no birth, have
 * "DEVICE:INODE" alone.
 */
static bool is_same_identity(const char *one, const char *other)
{
        const size_t length = strcspn(one, "@");

        if (one[length] != '\0' && strchr(other, '@') != NULL)
                return strcmp(strchr(one, ':'), other + strcspn(other, ":")) == 0;
        return length == strcspn(other, "@") && memcmp(one, other, length) == 0;
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
        return filesystem_unmake(&device, is_same_identity(identity, call->record.formatting), error);
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
                if ((r = provisioned_check_blank(call, error)) < 0 || (r = format(call, device, ret_type, error)) < 0)
                        return r;
                volume_forget_namespace(call);
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

/*
 * A copy of a volume has the UUID of the other's filesystem, of which xfs mounts one at a time, unless it is told that
 * it may (docs/KERNEL.md#copies-of-filesystems). The UUID stays: what is in backups and configurations may name it.
 */
static bool is_copy(const struct volume_call *call)
{
        cleanup_provision_record struct provision_record record = {};
        struct error ignored;

        return provisioned_find_own(call, &record, &ignored) == 0 && record.copy_of[0] != '\0';
}

/* A btrfs discards what it frees by itself (Linux 6.2): an image that was given all its blocks would lose them. */
static int keep_blocks(const struct volume_call *call, int context_fd, struct error *error)
{
        bool preallocate;
        int r = volume_kind_flag(call->request, call->kind->allocates, &preallocate, error);

        return r < 0 || !preallocate ? r : superblock_set(context_fd, "nodiscard", NULL, error);
}

/* What does not grow, as a btrfs of less than 256 MiB, serves as it is. */
void device_filesystem_grow_copy(const struct volume_call *call, const char *dir)
{
        char type[FILESYSTEM_TYPE_SIZE];
        struct block_device device;
        struct error error;

        volume_call_device(call, &device);
        if (block_device_fs_type(&device, type, &error) < 0 ||
            filesystem_grow(&device, type, dir, call->config.command_seconds, &error) < 0 ||
            provisioned_note_grown(call, &error) < 0)
                log_say("the filesystem of volume %s may be smaller than the volume: %s", call->request->name,
                        error_why(&error));
}

int device_filesystem_reach(const struct volume_call *call, const struct block_device *device, const char *type,
                            struct error *error)
{
        const struct mount_options *options = &call->request->mount_options;
        cleanup_close int context_fd = superblock_open(type, error);
        int r;

        if (context_fd < 0)
                return context_fd;
        if (is_direct(call, device, type) && (r = superblock_set(context_fd, "dax", "always", error)) < 0)
                return r;
        if (strcmp(type, "xfs") == 0 && is_copy(call) && (r = superblock_set(context_fd, "nouuid", NULL, error)) < 0)
                return r;
        if (strcmp(type, "btrfs") == 0 && (r = keep_blocks(call, context_fd, error)) < 0)
                return r;
        if ((r = filesystem_check_alone(type, device->path, error)) < 0 ||
            (r = superblock_create_on(context_fd, type, device->path, options, call->request->read_only, error)) < 0 ||
            (r = filesystem_check_opened(type, device->number, device->path, error)) < 0)
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
        if ((r = volume_check_no_writer(call, "mount", error)) < 0 ||
            (r = prepare(call, &device, type, &formatted, error)) < 0)
                return r;
        mount_fd = device_filesystem_reach(call, &device, type, error);
        if (mount_fd == -EBADMSG && !call->request->read_only && mend(call, &device, type))
                mount_fd = device_filesystem_reach(call, &device, type, error);
        /* before anyone can write to it; a volume of an earlier version gets it here, too */
        if (mount_fd >= 0 && (r = provisioned_note(call, /* has_kata_image= */ false, durability(call), error)) < 0) {
                fd_close(&mount_fd);
                mount_fd = r;
        }
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

int device_filesystem_attach(struct volume_call *call, struct error *error)
{
        enum file_durability durability;
        cleanup_close int mount_fd = -EBADF;
        int r = call->kind->attach(call, error);

        if (r < 0)
                return r;
        mount_fd = device_filesystem_mount(call, &durability, error);
        if (mount_fd < 0 || (r = volume_call_save(call, durability, error)) < 0)
                return mount_fd < 0 ? mount_fd : r;
        return fd_take(&mount_fd);
}

/* ---- a volume's device on this node: waited for, and checked that no other volume has it */

#define RETRY_MS 200

int volume_device_wait_for(const char *source, unsigned timeout_seconds, struct block_device *ret_device,
                           struct error *error)
{
        int64_t deadline_ms = clock_now_ms() + (int64_t)timeout_seconds * 1000;
        int r;

        while ((r = block_device_find(source, ret_device, error)) == -ENOENT || r == -ENXIO) {
                if (clock_now_ms() >= deadline_ms)
                        return fail_because(error, -r, OPERATION_FIND_DEVICE, source,
                                            "the device %s did not appear within %u seconds", source, timeout_seconds);
                clock_pause_ms(RETRY_MS);
        }
        return r;
}

struct claim {
        const struct volume_call *call;
        bool written; /* by that other one: then "readOnly" would change nothing */
        char text[USES_TEXT_SIZE];
};

/* A PersistentVolume is no FlexVolume driver's. */
static bool is_for_other(const struct volume_call *call, const struct volume_record *volume)
{
        return call->driver[0] != '\0' && volume != NULL && strcmp(volume->namespace, PROVISION_OF_CSI) == 0;
}

/* Readers share a device. */
static int match_claim(const struct use *use, void *argument, struct error *error)
{
        struct claim *claim = argument;
        const struct volume_call *call = claim->call;
        const struct volume_record *volume = use->volume;

        (void)error;
        if ((volume != NULL && strcmp(volume->name, call->request->name) == 0 &&
             strcmp(volume->driver, call->record.driver) == 0) ||
            (!use->writes && call->request->read_only && !is_for_other(call, volume)))
                return 0;
        claim->written = use->writes;
        uses_describe(use, claim->text);
        return 1;
}

bool volume_device_was_checked(const struct volume_call *call)
{
        return call->request->read_only || !call->record.read_only;
}

int volume_device_check_others(struct volume_call *call, const struct block_device *device, struct error *error)
{
        struct claim claim = { .call = call };
        char keys[USE_KEYS_SIZE] = "";
        int r = state_lock(&call->state, hash_bytes(HASH_SEED, &device->number, sizeof device->number), error);

        if (r < 0 || (r = disk_uses_add_device(keys, device->number, BLOCK_STACK_BELOW, error)) < 0)
                return r;
        r = uses_each_released(call->config.state_dir, keys, /* locked_id= */ NULL, match_claim, &claim, error);
        if (r < 0)
                return r;
        if (r > 0)
                return fail_because(error, EBUSY, claim.written ? OPERATION_SHARE_DEVICE : OPERATION_FIND_DEVICE,
                                    device->path, "the device %s is in use by %s; detach or end that first",
                                    device->path, claim.text);
        return 0;
}

int volume_device_check_alone(struct volume_call *call, const struct block_device *device, struct error *error)
{
        int r = volume_device_check_others(call, device, error);

        return r < 0 || call->request->read_only ? r : block_device_check_unused(device, error);
}
