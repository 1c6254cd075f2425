/* SPDX-License-Identifier: Apache-2.0 */
/* kind_loop.c - an image file of a pool (volume/kinds/loop_image.h), on a loop device. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"
#include "block/device.h"
#include "block/loop.h"
#include "block/stack.h"
#include "pool/pool_count.h"
#include "process/log.h"
#include "volume/call.h"
#include "volume/kind.h"
#include "volume/kinds/loop_image.h"
#include "volume/mount_dir.h"
#include "volume/same.h"

#define HELD_TRIES 10
#define HELD_WAIT_MS 50

static bool is_of_volume(const struct volume_call *call, const struct loop_device *device)
{
        const char *driver = call->recorded ? call->record.driver : call->driver;

        return loop_device_tagged_for(device->tag, call->config.state_dir, driver,
                                      volume_record_key(call->request->name));
}

/* 1: the record names a device that still belongs to the volume; 0: it does not. Errors: ETIMEDOUT, where that is not waited for. */
static int recorded_device(const struct volume_call *call, struct loop_device *ret_device, struct error *error)
{
        int r;

        if (!call->recorded || call->record.device[0] == '\0')
                return 0;
        r = (call->soon ? loop_device_look_soon : loop_device_look)(call->record.device, ret_device, error);
        if (r < 0 && loop_device_look_lost(call->record.device, call->record.source, r, ret_device) > 0)
                return 1;
        return r == -ETIMEDOUT ? r : r == 0 && is_of_volume(call, ret_device);
}

struct search {
        const struct volume_call *call;
        const struct stat *st; /* NULL: by its tag */
        bool attached;         /* only one that is not being detached */
        struct loop_device found;
};

static int match(const struct loop_device *device, void *argument, struct error *error)
{
        struct search *search = argument;

        (void)error;
        if (search->st != NULL ? !loop_device_is_over(device, search->st)
                               : !is_of_volume(search->call, device) || (search->attached && device->ending) ||
                                         loop_device_is_elsewhere(device))
                return 0;
        search->found = *device;
        return 1;
}

static void remember(struct volume_call *call, const struct loop_device *device)
{
        (void)text_copy(call->record.device, sizeof call->record.device, device->path);
        call->record.device_number = device->number;
}

/* The name of the image, of the record or of a volume of this name. Gives NAME_MAX + 1 bytes. */
static void put_image_name(const struct volume_call *call, char *ret_name)
{
        const char *slash = call->recorded ? strrchr(call->record.source, '/') : NULL;

        if (slash != NULL)
                (void)text_copy(ret_name, NAME_MAX + 1, slash + 1);
        else
                (void)snprintf(ret_name, NAME_MAX + 1, "%.200s" POOL_IMAGE_SUFFIX, call->request->name);
}

/* By its tag, whatever image it is over. */
static int find_tagged(struct volume_call *call, struct search *ret_search, struct error *error)
{
        char name[NAME_MAX + 1];

        *ret_search = (struct search){ .call = call, .attached = true };
        put_image_name(call, name);
        return loop_device_each_named(name, match, ret_search, error);
}

/* 1: the record's device, or another with the volume's tag; 0: there is none. */
static int look(struct volume_call *call, struct error *error)
{
        struct search search = {};
        int r = recorded_device(call, &search.found, error);

        if (r < 0)
                return r;
        /* what is mounted holds a device that was detached by hand, and attach keeps it */
        if (r > 0 && (!search.found.ending || mount_dir_is_staged(call))) {
                remember(call, &search.found);
                return 1;
        }
        r = find_tagged(call, &search, error);
        if (r == 1)
                remember(call, &search.found);
        return r;
}

/* An image has one device: two would corrupt its filesystem. */
static int adopt(struct volume_call *call, const struct loop_image *image, struct error *error)
{
        struct search search = { .call = call, .st = &image->st };
        int r = loop_device_each_over(image->fd, match, &search, error);

        if (r <= 0)
                return r;
        if (!is_of_volume(call, &search.found))
                return fail_because(error, EBUSY, "attach loop device", image->path,
                                    "the image %s is already in use by %s%s%s; detach that first", image->path,
                                    search.found.path, search.found.tag[0] != '\0' ? ": " : "", search.found.tag);
        if (search.found.ending && (r = loop_device_keep(&search.found, error)) < 0)
                return r == -ENXIO ? 0 : r; /* it was detached meanwhile: attach a new one */
        remember(call, &search.found);
        return 1;
}

/*
 * A loop device ends with the boot: of the record, a power cut need not leave more than an unfinished filesystem that
 * an earlier one names.
 */
static int save(struct volume_call *call, struct error *error)
{
        return volume_call_save(call, call->recorded ? FILE_ORDERED : FILE_PLAIN, error);
}

static int attach_new(struct volume_call *call, const struct loop_image *image, struct error *error)
{
        bool was_recorded = call->recorded;
        struct loop_form form = { .read_only = image->read_only };
        cleanup_close int fd = -EBADF;
        struct loop_device device;
        char tag[LOOP_TAG_SIZE];
        bool lazy;
        int r;

        if (call->kind->find_offset != NULL && (r = call->kind->find_offset(image->fd, &form.offset_bytes, error)) < 0)
                return r;
        form.sector_bytes = loop_image_sector_bytes(image, form.offset_bytes);
        call->record.device[0] = '\0';
        loop_device_tag(call->config.state_dir, call->record.driver, volume_record_key(call->record.name),
                        call->record.name, tag);
        if ((r = save(call, error)) < 0)
                return r;
        fd = loop_device_attach(image->fd, image->path, tag, &form, &device, error);
        r = fd < 0 ? fd : 0;
        fd_close(&fd);
        if (r == 0) {
                remember(call, &device);
                r = volume_call_save(call, FILE_ORDERED, error);
                if (r < 0) {
                        struct error ignored;

                        (void)loop_device_detach(&device, &lazy, &ignored); /* the first failure is the one to report */
                }
        }
        if (r < 0 && !was_recorded) {
                struct error ignored;

                (void)volume_call_remove_record(call, &ignored); /* likewise */
        }
        return r;
}

static int detach_all(struct volume_call *call, struct error *error);

/* had: the device that the volume already has, or NULL; it is not mounted. */
static int attach_image(struct volume_call *call, struct loop_image *image, const struct loop_device *had,
                        struct error *error)
{
        uint64_t key[2] = { image->st.st_dev, image->st.st_ino };
        struct error ignored;
        int r;

        if (had != NULL && loop_device_is_over(had, &image->st)) {
                if (!had->ending)
                        return 0;
        } else if (had != NULL) {
                if ((r = detach_all(call, error)) < 0)
                        return r;
                volume_call_forget_source(call);
        }
        /* an attach of another image was killed, perhaps with a device that is in no record */
        if (call->recorded && call->record.device[0] == '\0' && strcmp(call->record.source, image->path) != 0) {
                if ((r = detach_all(call, error)) < 0)
                        return r;
                volume_call_forget_owner(call); /* which filesystem is unfinished the record says by its inode */
        }
        volume_call_init_record(call);
        (void)text_copy(call->record.source, sizeof call->record.source, image->path);
        /* always after the volume's own lock: another volume may name the same image */
        if ((r = state_lock(&call->state, hash_bytes(HASH_SEED, key, sizeof key), error)) < 0)
                return r;
        if ((r = loop_image_watch(call, image, error)) < 0)
                return r;
        r = image->created ? 0 : adopt(call, image, error);
        if (r < 0)
                return r;
        if (r > 0)
                return save(call, error);
        if ((r = attach_new(call, image, error)) < 0)
                return r;
        /* again; it is there else, and the next count sees it */
        (void)loop_image_watch(call, image, &ignored);
        return 0;
}

/* Two volumes may name one image: only one makes it and has it. */
static int lock_image(struct volume_call *call, const struct loop_image *image, struct error *error)
{
        struct stat pool;
        uint64_t key;
        int r;

        if (fstat(image->pool_fd, &pool) < 0)
                return fail(error, errno, "fstat", image->path);
        key = hash_bytes(HASH_SEED, &pool.st_dev, sizeof pool.st_dev);
        key = hash_bytes(key, &pool.st_ino, sizeof pool.st_ino);
        key = hash_bytes(key, image->name, strlen(image->name));
        call->waits = true;
        r = state_lock(&call->state, key, error);
        call->waits = false;
        return r;
}

/* Pods keep what is mounted, even when its image was removed; without pods it is refused: it is gone once unmounted. */
static int check_mounted(const struct volume_call *call, const struct loop_device *device, struct error *error)
{
        const char *image = call->record.source;
        struct stat st;

        if (stat(image, &st) == 0 && loop_device_is_over(device, &st))
                return 0;
        if (device->lost)
                return fail_because(error, ESTALE, "attach", image,
                                    "the filesystem of the image %s has ended; end the pods that have the volume",
                                    image);
        log_say("the image %s was removed or replaced; %s still has its former content", image, device->path);
        if (call->record.published_count > 0)
                return 0;
        return fail_because(error, ESTALE, "attach", image,
                            "the image %s was removed or replaced while the volume is mounted on %s; unmount it first",
                            image, call->record.staged.dir);
}

static int attach(struct volume_call *call, struct error *error)
{
        cleanup_loop_image struct loop_image image = LOOP_IMAGE_NONE;
        struct loop_device device;
        const int had = recorded_device(call, &device, error);
        int r;

        if (had < 0)
                return had;
        if (had > 0 && !device.ending && mount_dir_is_staged(call))
                return check_mounted(call, &device, error);
        if ((r = loop_image_locate(call, &image, error)) < 0 || (r = lock_image(call, &image, error)) < 0 ||
            (r = loop_image_check_policy(call, &image, error)) < 0)
                return r;
        r = loop_image_open(call, &image, error);
        if (r == 0)
                r = volume_check_image_csi(call, image.fd, image.path, error);
        if (r == 0)
                r = attach_image(call, &image, had > 0 ? &device : NULL, error);
        if (r < 0)
                loop_image_undo(call, &image);
        return r;
}

/* kubelet calls mountdevice and mount with all options, so that none means the volume's own image. */
static int names_other(struct volume_call *call, char *ret_named, struct error *error)
{
        cleanup_loop_image struct loop_image image = LOOP_IMAGE_NONE;
        bool named = json_object_get(call->request->options, "pool") != NULL ||
                     json_object_get(call->request->options, "image") != NULL;
        struct stat attached;
        struct stat st;
        int r;

        if (!named && call->request->verb != VERB_MOUNTDEVICE && call->request->verb != VERB_MOUNT)
                return 0;
        call->recorded = false; /* as for a new volume */
        r = loop_image_locate(call, &image, error);
        call->recorded = true;
        if (r < 0)
                return named ? r : 0;
        (void)text_copy(ret_named, PATH_MAX, image.path);
        if (strcmp(image.path, call->record.source) == 0)
                return 0;
        return fstatat(image.pool_fd, image.name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
               stat(call->record.source, &attached) < 0 || st.st_dev != attached.st_dev || st.st_ino != attached.st_ino;
}

/* The node's LVM or mdadm takes what a pod wrote to its device for its own. */
static bool has_holder(const struct loop_device *device, char *ret_name, size_t size)
{
        static struct block_stack stack;
        struct error ignored;

        stack = (struct block_stack){};
        if (block_stack_find(device->number, 0, &stack, &ignored) < 0)
                return false;
        for (size_t i = 1; i < stack.count; i++) /* partitions are among them */
                if (block_device_attribute(stack.numbers[i], "dm/name", ret_name, size) >= 0 ||
                    block_device_attribute(stack.numbers[i], "md/level", ret_name, size) >= 0)
                        return true;
        return false;
}

/*
 * A container's root can hide a mount from the list of uses: it detaches it with a file open, or in a namespace of its
 * own. The filesystem is active then, and holds the device. After the last unmount it may be active for a moment.
 */
static int check_not_held(const struct volume_call *call, const struct loop_device *device, struct error *error)
{
        const int tries = call->was_unmounted ? 0 : HELD_TRIES;
        struct block_device named = { .number = device->number };
        struct error ignored;
        char holder[128];
        int r = 0;

        (void)text_copy(named.path, sizeof named.path, device->path);
        for (int i = 0; (r = block_device_check_unused(&named, &ignored)) == -EBUSY && i < tries; i++)
                clock_pause_ms(HELD_WAIT_MS);
        if (r == -EBUSY && has_holder(device, holder, sizeof holder))
                return fail_because(error, EBUSY, "detach", device->path,
                                    "the node's LVM or RAID has taken what is on it for its own (%s): deactivate that "
                                    "(vgchange -an), and have them leave loop devices alone",
                                    holder);
        return r != -EBUSY ? 0
                           : fail_because(error, EBUSY, "detach", device->path,
                                          "its filesystem is still active: a process has a file of it open, or a "
                                          "mount of it that is not in the list of mounts; end that container");
}

static int detach_one(struct volume_call *call, const struct loop_device *device, struct error *error)
{
        bool lazy;
        int r = device->ending ? 0 : check_not_held(call, device, error);

        if (r < 0 || (r = loop_device_detach(device, &lazy, error)) < 0 || !lazy)
                return r;
        log_say("%s is still in use; it is detached when its last user closes it", device->path);
        (void)snprintf(call->answer.message, sizeof call->answer.message,
                       "%s is still in use; it is detached when its last user closes it", device->path);
        return 0;
}

/* Detach every device of the volume: more than one where a record was lost. What the record names is the volume's for sure. */
static int detach_all(struct volume_call *call, struct error *error)
{
        struct search search;
        int r = recorded_device(call, &search.found, error);

        if (r < 0 ||
            (r > 0 && (search.found.lost || !search.found.ending) && (r = detach_one(call, &search.found, error)) < 0))
                return r;
        while ((r = find_tagged(call, &search, error)) == 1)
                if ((r = detach_one(call, &search.found, error)) < 0)
                        return r;
        return r;
}

/* Mostly the record names the device; else all loop devices are looked at. */
static int detach(struct volume_call *call, struct error *error)
{
        struct loop_device device;
        const int r = recorded_device(call, &device, error);

        if (r < 0)
                return r;
        return r == 0 || device.ending ? detach_all(call, error) : detach_one(call, &device, error);
}

/* "DEVICE:INODE@BIRTH" of the image; without a birth where its filesystem tells none (device_filesystem_unmake()). */
static int identify(const struct volume_call *call, char *ret_identity, struct error *error)
{
        struct loop_device device;
        struct statx image;
        struct stat st;
        int length;
        int r = loop_device_look(call->record.device, &device, error);

        if (r < 0)
                return r;
        length = snprintf(ret_identity, VOLUME_IDENTITY_SIZE, "%llx:%llu", (unsigned long long)device.file_device,
                          (unsigned long long)device.file_inode);
        if (statx(AT_FDCWD, call->record.source, AT_SYMLINK_NOFOLLOW, STATX_INO | STATX_BTIME, &image) < 0 ||
            (image.stx_mask & STATX_BTIME) == 0)
                return 0;
        st = (struct stat){ .st_dev = makedev(image.stx_dev_major, image.stx_dev_minor), .st_ino = image.stx_ino };
        if (loop_device_is_over(&device, &st))
                (void)snprintf(ret_identity + length, VOLUME_IDENTITY_SIZE - (size_t)length, "@%lld.%09u",
                               (long long)image.stx_btime.tv_sec, image.stx_btime.tv_nsec);
        return 0;
}

/* An image that is one hole was never written to; pages of the device that are still dirty are written first. */
static int is_untouched(const struct volume_call *call)
{
        cleanup_close int device_fd = open(call->record.device, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
        cleanup_close int fd = file_open_leased(AT_FDCWD, call->record.source, O_RDONLY | O_NOFOLLOW, 0);
        struct loop_device device;
        struct error ignored;
        struct stat st;

        if (device_fd < 0 || fd < 0 || fstat(fd, &st) < 0 ||
            loop_device_look(call->record.device, &device, &ignored) < 0 || !loop_device_is_over(&device, &st))
                return 0;
        if (sync_file_range(device_fd, 0, 0,
                            SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER) < 0)
                return 0;
        /* two questions, since some filesystems answer one of them wrongly */
        return fstat(fd, &st) == 0 && st.st_blocks == 0 && lseek(fd, 0, SEEK_DATA) < 0 && errno == ENXIO;
}

static int predict(struct volume_call *call, struct error *error)
{
        if (snprintf(call->record.device, sizeof call->record.device, "/dev/flexgraft/%s", call->request->name) >=
            (int)sizeof call->record.device)
                return fail(error, ENAMETOOLONG, "predict device", call->request->name);
        return 0;
}

/* Of one whose filesystem has ended nobody knows. */
static bool is_over(const struct volume_call *call, const struct loop_image *image)
{
        struct loop_device device;
        struct error ignored;

        return loop_device_look(call->record.device, &device, &ignored) == 0 &&
               loop_device_is_over(&device, &image->st);
}

static int grow(struct volume_call *call, uint64_t size_bytes, uint64_t *ret_size_bytes, struct error *error)
{
        cleanup_loop_image struct loop_image image = LOOP_IMAGE_NONE;
        int attached;
        int r;

        size_bytes = (size_bytes + LOOP_IMAGE_STEP_BYTES - 1) / LOOP_IMAGE_STEP_BYTES * LOOP_IMAGE_STEP_BYTES;
        if ((r = loop_image_locate_own(call, &image, error)) < 0 ||
            (!call->recorded && ((r = loop_image_check_policy(call, &image, error)) < 0 ||
                                 (r = loop_image_check_owner(call, &image, error)) < 0)))
                return r;
        r = loop_image_look(&image, error);
        if (r == -ENOENT) { /* it is on another node, where expandfs grows it */
                *ret_size_bytes = size_bytes;
                return 0;
        }
        if (r < 0 || (attached = look(call, error)) < 0)
                return r < 0 ? r : attached;
        if (attached > 0 && !is_over(call, &image))
                return fail_because(error, ESTALE, "grow volume", image.path,
                                    "the image %s was removed or replaced; %s still has its former content", image.path,
                                    call->record.device);
        if ((uint64_t)image.st.st_size < size_bytes && (r = loop_image_grow(call, &image, size_bytes, error)) < 0)
                return r;
        if (attached > 0 && (r = loop_device_grow(call->record.device, error)) < 0)
                return r;
        *ret_size_bytes = (uint64_t)image.st.st_size;
        return 0;
}

static bool guess(const struct volume_request *request)
{
        return json_object_get(request->options, "image") != NULL ||
               json_object_get(request->options, "pool") != NULL || json_object_get(request->options, "size") != NULL;
}

static const struct volume_option options[] = {
        { .key = "pool", .fallback = "the pool \"default\"", .help = "pool that the image is in" },
        { .key = "image",
          .fallback = "NAME.img",
          .help = "the image's file in its pool; a new one ends in .img",
          .locates = true,
          .profiled = true },
        { .key = "size", .type = VOLUME_OPTION_SIZE, .help = "make an image this large where there is none" },
        { .key = LOOP_IMAGE_ALLOCATES,
          .type = VOLUME_OPTION_BOOLEAN,
          .fallback = "false",
          .help = "true: a new image gets all its room at once",
          .profiled = true,
          .kept = true,
          .made_with = "true" },
        { .key = "profile", .help = "profile, in place of \"image\" and \"preallocate\"" },
        {},
};

static const char *const pool_types[] = { "loop", NULL };

const struct volume_kind kind_loop = { VOLUME_KIND(loop),
                                       .needs = NEED(LOOP) | NEED(LOOP_CONFIGURE),
                                       .options = options,
                                       .hints = block_hints,
                                       .guess = guess,
                                       .pool_types = pool_types,
                                       .default_pool = true,
                                       .tagged = true,
                                       .has_image = true,
                                       .makes_volumes = true,
                                       .freezes = true,
                                       .id_suffix = POOL_IMAGE_SUFFIX,
                                       .allocates = LOOP_IMAGE_ALLOCATES,
                                       .attach = attach,
                                       .look = look,
                                       .detach = detach,
                                       .identify = identify,
                                       .is_untouched = is_untouched,
                                       .predict = predict,
                                       .grow = grow,
                                       .names_other = names_other,
                                       .attach_held = loop_held_attach };
