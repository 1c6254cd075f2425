/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_image.c - the filesystem in an image file of the node as the source of a mount: the file is opened once, and
 * shown by a loop device that ends with its last mount, wherever a process is killed.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/hash.h"
#include "base/node_path.h"
#include "base/text.h"
#include "block/image.h"
#include "inject/injection.h"
#include "inject/kinds/device_mount.h"
#include "inject/request/request_keys.h"
#include "inject/request/source.h"
#include "state/config.h"
#include "state/state_dir.h"
#include "state/volume_record.h"

static const struct hint hints[] = {
        { OPERATION_OPEN_IMAGE, EISDIR, "for a directory use mount-bind" },
        { OPERATION_OPEN_IMAGE, EINVAL, "a block device is for mount-block; other files hold no filesystem" },
        { OPERATION_OPEN_IMAGE, EACCES,
          "mount-volume mounts a volume by its name; volume-create with \"id\" makes a volume of an image of a pool" },
        { OPERATION_OPEN_IMAGE, EROFS, "\"readOnly\": true mounts it read-only" },
        { OPERATION_FIND_PARTITION, EINVAL, "name one with \"partition\"" },
        { OPERATION_FIND_PARTITION, ENOTUNIQ, "say \"partition\" by its number" },
        { OPERATION_FIND_PARTITION, EBADMSG,
          "see what sfdisk --verify says of the image, and repair its partition table" },
        { OPERATION_FIND_PARTITION, ENOENT,
          "sfdisk --list shows the partitions of an image; qemu-img convert -O raw makes one of qcow2 and the like" },
        { OPERATION_PROBE, ENODATA,
          "create a filesystem in it first, if it is blank (mkfs), or name its type with \"fsType\"; an image must be "
          "raw, which qemu-img convert -O raw makes of others" },
        { OPERATION_ATTACH_IMAGE, EBUSY,
          "losetup --list shows what has it; two mounts must have the same \"readOnly\"" },
        { OPERATION_FSCONFIG, EBUSY,
          "findmnt and lsof show what uses the device; two mounts of it must have the same \"readOnly\"" },
        { OPERATION_FSCONFIG, EROFS,
          "its journal must be replayed first: mount it once for writing, or, where that is wanted, "
          "say \"options\": \"noload\" (ext4) or \"norecovery\" (xfs)" },
        { OPERATION_FSCONFIG, EUCLEAN, HINT_DAMAGED },
        { OPERATION_FSCONFIG, EBADMSG, HINT_DAMAGED },
        {},
};

static int check_file(int fd, const char *image, struct stat *ret_file, struct error *error)
{
        if (fstat(fd, ret_file) < 0)
                return fail(error, errno, "fstat", image);
        if (S_ISDIR(ret_file->st_mode))
                return fail_because(error, EISDIR, OPERATION_OPEN_IMAGE, image, "it is a directory, and no image");
        if (!S_ISREG(ret_file->st_mode))
                return fail_because(error, EINVAL, OPERATION_OPEN_IMAGE, image, "it is no regular file");
        if (ret_file->st_size == 0)
                return fail_because(error, ENODATA, OPERATION_PROBE, image, "it is empty");
        return 0;
}

/* The driver attaches such an image by rules of its own, also later. */
static int check_no_volume(const struct injection *injection, const char *image, struct error *error)
{
        if (!pool_mark_beside(image) && !text_lies_in(image, injection->session->state_dir))
                return 0;
        return fail_because(error, EACCES, OPERATION_OPEN_IMAGE, image,
                            "it is in a pool, so it is, or can become, the image of a volume");
}

/*
 * The file of an O_PATH descriptor, which cannot be replaced any more. Without O_NONBLOCK, for which the kernel refuses
 * a file while another call has a lease of it (file_is_open_once()).
 */
static int open_file(int path_fd, int access, const char *image, struct error *error)
{
        char link[64];
        int fd;

        (void)snprintf(link, sizeof link, "/proc/self/fd/%d", path_fd);
        fd = open(link, access | O_NOCTTY | O_CLOEXEC);
        if (fd >= 0)
                return fd;
        if (access == O_RDWR && (errno == EROFS || errno == EACCES || errno == EPERM || errno == ETXTBSY))
                return fail_because(error, EROFS, OPERATION_OPEN_IMAGE, image, "the image cannot be written: %s",
                                    error_text(errno));
        return fail(error, errno, OPERATION_OPEN_IMAGE, image);
}

static bool asks_to_write(const struct request *request)
{
        return !request->read_only &&
               (request_key_given(request, "readOnly") || (request->options.attr_clear & MOUNT_ATTR_RDONLY) != 0);
}

static bool writes(const struct injection *injection)
{
        return !injection->request->read_only && !device_mount_never_writes(injection->fs_type);
}

static int find_part(struct injection *injection, const struct stat *file, struct error *error)
{
        const struct request *request = injection->request;
        const char *image = injection->record.origin;
        char digested[128];
        int r = image_find(injection->source_fd, image, (uint64_t)file->st_size, &request->partition,
                           request->fs_type == NULL, &injection->part, error);

        if (r < 0)
                return r;
        (void)text_copy(injection->fs_type, sizeof injection->fs_type,
                        request->fs_type != NULL ? request->fs_type : injection->part.type);
        if (asks_to_write(request) && device_mount_never_writes(injection->fs_type))
                return fail_because(error, EINVAL, "check options", image,
                                    "%s is always read-only; leave \"readOnly\" out, or say true", injection->fs_type);
        (void)snprintf(digested, sizeof digested, "%" PRIu64 ":%" PRIu64 ":%" PRIu64 ":%" PRIu64,
                       (uint64_t)file->st_dev, (uint64_t)file->st_ino, injection->part.offset_bytes,
                       injection->part.number != 0 ? injection->part.size_bytes : 0);
        injection_digest_text(injection, digested);
        return 0;
}

static uint64_t key_of(const struct stat *file)
{
        const uint64_t key[] = { file->st_dev, file->st_ino };

        return hash_bytes(HASH_SEED, key, sizeof key);
}

static int find_image(struct injection *injection, struct error *error)
{
        char *image = injection->record.origin;
        cleanup_close int path_fd = -EBADF;
        struct stat file;
        int r = injection_check_path(injection, injection->request->source, !injection->request->read_only, error);

        if (r < 0)
                return r;
        path_fd = node_path_open(injection->request->source, image, error);
        if (path_fd < 0) {
                (void)text_copy(error->operation, sizeof error->operation, OPERATION_OPEN_IMAGE);
                return path_fd;
        }
        if ((r = check_file(path_fd, image, &file, error)) < 0 || (r = injection_check_policy(injection, error)) < 0 ||
            (r = check_no_volume(injection, image, error)) < 0)
                return r;
        injection->source_fd = open_file(path_fd, O_RDONLY, image, error);
        if (injection->source_fd < 0)
                return injection->source_fd;
        if ((r = find_part(injection, &file, error)) < 0)
                return r;
        injection->directory = true;
        injection->image_key = key_of(&file);
        if (!writes(injection))
                return 0;
        fd_close(&injection->source_fd);
        injection->source_fd = open_file(path_fd, O_RDWR, image, error);
        return injection->source_fd < 0 ? injection->source_fd : 0;
}

static int take_disk(const struct mount_record *record, const char *id, void *argument, struct error *error)
{
        uint64_t *disk = argument;

        (void)id;
        (void)error;
        if (record != NULL && record->disk != 0)
                *disk = record->disk;
        return *disk != 0;
}

/* The loop device of another mount of the image, as its record has it; 0. */
static uint64_t find_recorded(const struct injection *injection, const struct stat *file)
{
        char keys[USE_KEYS_SIZE] = "";
        struct error ignored; /* it is looked for among all */
        uint64_t disk = 0;

        use_keys_add_file(keys, file->st_dev, file->st_ino);
        (void)mount_record_each_with(&injection->session->state, keys, take_disk, &disk, &ignored);
        return disk;
}

static int attach(struct injection *injection, struct error *error)
{
        struct mount_record *record = &injection->record;
        struct stat file;
        int fd;

        if (fstat(injection->source_fd, &file) < 0)
                return fail(error, errno, "fstat", record->origin);
        fd = image_attach(injection->source_fd, record->origin, &injection->part, !writes(injection),
                          find_recorded(injection, &file), &injection->device, error);
        if (fd < 0)
                return fd;
        fd_close(&injection->source_fd); /* the device has it */
        injection->source_fd = fd;
        record->disk = injection->device.number;
        record->disk_sequence = block_device_disk(record->disk);
        use_keys_add_device(record->uses, record->disk);
        injection->device.number = 0; /* it is of this boot: the same request finds another number later */
        return 0;
}

/* Of the image that is mounted, one at a time. Static: a worker that hangs in the kernel keeps it only until release(). */
static struct state image_lock = STATE_NONE;

/*
 * With the lock under which the driver attaches an image: of two at once the second finds the first one's device, and finds
 * it mounted. Until then it would take it for one of a mount that has ended, and be in the way of the first one's mount where
 * it makes sure of that (loop_device_is_looked_at()).
 */
static int make_mount(struct injection *injection, bool owned, struct error *error)
{
        int r = state_open(injection->session->state_dir, volume_record_table.directory, /* create= */ true,
                           &image_lock, error);

        if (r == 0)
                r = state_lock(&image_lock, injection->image_key, error);
        if (r == 0 && injection->device.path[0] == '\0')
                r = attach(injection, error);
        if (r == 0)
                r = device_mount_make(injection, owned, error);
        state_release(&image_lock);
        return r;
}

static void release(struct injection *injection)
{
        (void)injection;
        state_release(&image_lock);
}

/* In words a number is a string, too. */
static int take_partition(void *object, const char *key, const json_t *value, struct error *error)
{
        struct request *request = object;
        uint64_t number;

        if (json_is_integer(value) && json_integer_value(value) >= 0 &&
            json_integer_value(value) <= IMAGE_PARTITION_MAX) {
                request->partition =
                        (struct image_choice){ .by_number = true, .number = (unsigned)json_integer_value(value) };
                return 0;
        }
        if (!json_is_string(value))
                return json_value_refuse(error, key,
                                         "must be a number from 0 to 65535 (0: the whole image), or a string: a "
                                         "partition's name, or PARTLABEL=, PARTUUID=, LABEL= or UUID= and its value");
        if (text_number(json_string_value(value), IMAGE_PARTITION_MAX, &number)) {
                request->partition = (struct image_choice){ .by_number = true, .number = (unsigned)number };
                return 0;
        }
        request->partition = (struct image_choice){};
        return json_value_string(key, value, JSON_VALUE_ID_MAX * 2, &request->partition.name, error);
}

static json_t *schema_of_partition(const struct key_table *table, unsigned programs)
{
        (void)table;
        (void)programs;
        return json_pack("{s:[{s:s, s:i, s:i}, {s:s, s:i, s:i}]}", "anyOf", "type", "integer", "minimum", 0, "maximum",
                         IMAGE_PARTITION_MAX, "type", "string", "minLength", 1, "maxLength", JSON_VALUE_ID_MAX * 2);
}

static const struct key keys[] = {
        { REQUEST_KEY_CONTAINER(1) },
        { "source", 1, 1, KEY_PATH, .positional = 1, REQUEST_FIELD(source),
          .help = "absolute path on the node, of an image file" },
        { REQUEST_KEY_TARGET },
        { "partition", 1, 0, KEY_OWN, .take = take_partition, .schema = schema_of_partition,
          .help = "which one: its number, its name or its filesystem's label, or PARTLABEL=, PARTUUID=, LABEL= or "
                  "UUID= and its value; the only one if absent; 0: the whole image" },
        { REQUEST_KEY_FS_TYPE },
        { REQUEST_KEY_READ_ONLY },
        { REQUEST_KEY_FS_OPTIONS },
        { REQUEST_KEY_FALLBACK("none") },
        { REQUEST_KEY_CACHE },
        REQUEST_KEYS_OF_MOUNT(request_ids_words),
};
REQUEST_KEY_TABLE(source_image_keys, keys);

static const char *const oci_types[] = { "image", NULL };

const struct source_kind source_image = {
        .word = "image",
        .needs = NEED(USER_NAMESPACES) | NEED(LOOP) | NEED(LOOP_CONFIGURE),
        .keys = &source_image_keys,
        .hints = hints,
        .oci_types = oci_types,
        .oci_source = "source",
        .foreign = true,
        .shared = true, /* by all that mount the same image */
        .ownable = true,
        .remap = REMAP_ASKED,
        .open_text = "open the image; find the partition and the type of its filesystem", /* openat2, libblkid */
        .make_text = SOURCE_MOUNTS_FILESYSTEM, /* ioctl; fsopen, fsconfig, fsmount */
        .open = find_image,
        .make = make_mount,
        .check_recorded = device_mount_check_recorded,
        .release = release,
};
