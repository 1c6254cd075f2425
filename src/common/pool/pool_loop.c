/* SPDX-License-Identifier: Apache-2.0 */
/* pool_loop.c - image files in a directory. */
#include "pool/pool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/text.h"
#include "block/device.h"
#include "block/loop.h"
#include "pool/pool_loop.h"
#include "pool/pool_sums.h"
#include "state/volume_record.h"

#define ALIGNMENT_BYTES 4096U
#define RECORDS_BYTES ((uint64_t)1024 * 1024)

static const struct file_key keys[] = {
        { "path", "an absolute path", file_key_is_path, true, NULL, "Directory of the images.", NULL },
        {},
};

static const char *read_keys(const json_t *file, struct pool *pool)
{
        (void)text_path_normal(json_string_value(json_object_get(file, "path")), pool->path); /* it is one */
        return NULL;
}

static uint64_t round_down(uint64_t bytes)
{
        return bytes / ALIGNMENT_BYTES * ALIGNMENT_BYTES;
}

struct walk {
        const struct pool *pool;
        pool_item_function *function;
        void *argument;
};

static int pass_on(const char *name, const struct stat *st, void *argument, struct error *error)
{
        const struct walk *walk = argument;
        struct pool_item item = { .size_bytes = (uint64_t)st->st_size };

        (void)text_copy(item.id, sizeof item.id, name); /* as long as a name can be */
        (void)snprintf(item.path, sizeof item.path, "%s/%s", walk->pool->path, name);
        return walk->function(&item, walk->argument, error);
}

static int each(const struct config *config, const struct pool *pool, pool_item_function *function, void *argument,
                struct error *error)
{
        cleanup_close int pool_fd = pool_open(config, pool, error);
        struct walk walk = { .pool = pool, .function = function, .argument = argument };

        return pool_fd < 0 ? pool_fd : pool_images_each(pool_fd, pass_on, &walk, error);
}

static int locate(const struct config *config, const struct pool *pool, char *ret_location, struct error *error)
{
        cleanup_close int pool_fd = pool_open(config, pool, error);
        struct stat st;

        if (pool_fd < 0)
                return pool_fd;
        if (fstat(pool_fd, &st) < 0)
                return fail(error, errno, "fstat", pool->path);
        (void)snprintf(ret_location, POOL_LOCATION_SIZE, "loop:%llx:%llu", (unsigned long long)st.st_dev,
                       (unsigned long long)st.st_ino);
        return 0;
}

/* Where images and records share a filesystem, some room is kept for the records. */
static uint64_t kept_for_records(const struct config *config, int pool_fd)
{
        struct stat pool;
        struct stat records;

        return stat(config->state_dir, &records) == 0 && fstat(pool_fd, &pool) == 0 && records.st_dev == pool.st_dev
                       ? RECORDS_BYTES
                       : 0;
}

/*
 * Sparse images count at full size. With maxPercent, room above that share of the filesystem is not available.
 */
static int measure(const struct config *config, const struct pool *pool, const json_t *parameters,
                   struct pool_measure *ret_measure, struct error *error)
{
        cleanup_close int pool_fd = pool_open(config, pool, error);
        struct pool_use use;
        uint64_t budget;
        uint64_t left;
        uint64_t owed;
        struct statfs fs;
        int r;

        (void)parameters;
        if (pool_fd < 0)
                return pool_fd;
        r = pool->only_read ? pool_sums_look(config->state_dir, pool_fd, &use, error)
                            : pool_sums_ask(config->state_dir, pool_fd, /* anew= */ false, &use, error);
        if (r < 0)
                return r;
        if (fstatfs(pool_fd, &fs) < 0)
                return fail(error, errno, "fstatfs", pool->path);
        budget = pool_share(pool, (uint64_t)fs.f_blocks * (uint64_t)fs.f_bsize);
        left = budget > use.full_bytes ? budget - use.full_bytes : 0;
        owed = use.owed_bytes + kept_for_records(config, pool_fd);
        ret_measure->total_bytes = round_down(budget);
        ret_measure->available_bytes = (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize;
        ret_measure->available_bytes = ret_measure->available_bytes > owed ? ret_measure->available_bytes - owed : 0;
        if (pool->max_percent < 100 && left < ret_measure->available_bytes)
                ret_measure->available_bytes = left;
        ret_measure->available_bytes = round_down(ret_measure->available_bytes);
        ret_measure->largest_bytes = ret_measure->available_bytes;
        ret_measure->alignment_bytes = ALIGNMENT_BYTES;
        ret_measure->inodes = (uint64_t)fs.f_files;
        ret_measure->inodes_free = (uint64_t)fs.f_ffree;
        return 0;
}

static void choose_id(const struct pool *pool, const char *name, char *ret_id)
{
        char stem[VOLUME_RECORD_STEM_SIZE];

        (void)pool;
        volume_record_stem(name, stem);
        (void)snprintf(ret_id, PROVISION_ID_MAX, "%s" POOL_IMAGE_SUFFIX, stem);
}

static bool is_sparse(const json_t *parameters)
{
        return !pool_parameter_flag(parameters, "preallocate", true);
}

static const struct file_key parameters_of_volumes[] = {
        { "preallocate", "\"true\" or \"false\"", file_key_is_flag, false, "true",
          "Whether an image gets all its blocks at once, or is sparse. Sparse images count at full size.", NULL },
        {},
};

static int open_in(int pool_fd, const struct pool *pool, const char *id, int flags, struct error *error)
{
        cleanup_close int fd = -EBADF;
        struct stat st;

        if (!pool_counts(id) || strchr(id, '/') != NULL) /* before it is made */
                return fail_because(error, EINVAL, OPERATION_OPEN_IMAGE, id,
                                    "%s/%s cannot be the image of a volume, whose name ends in " POOL_IMAGE_SUFFIX,
                                    pool->path, id);
        fd = file_open_leased(pool_fd, id, flags | O_NOFOLLOW, 0600);
        if (fd == -ENOENT)
                return -ENOENT;
        if (fd < 0)
                return fail(error, -fd, OPERATION_OPEN_IMAGE, id);
        if (fstat(fd, &st) < 0)
                return fail(error, errno, "fstat", id);
        if (!S_ISREG(st.st_mode))
                return fail_because(error, EINVAL, OPERATION_OPEN_IMAGE, id, "%s/%s is not an image", pool->path, id);
        return fd_take(&fd);
}

int pool_loop_open(const struct config *config, const struct pool *pool, const char *id, int flags,
                   struct stat *ret_stat, struct error *error)
{
        cleanup_close int pool_fd = pool_open(config, pool, error);
        cleanup_close int fd = pool_fd < 0 ? pool_fd : open_in(pool_fd, pool, id, flags, error);

        if (fd < 0)
                return fd;
        return fstat(fd, ret_stat) < 0 ? fail(error, errno, "fstat", id) : fd_take(&fd);
}

/* ret_owed_bytes: blocks that it does not have. */
static int fill(int fd, int pool_fd, const struct provision_record *record, uint64_t *ret_owed_bytes,
                struct error *error)
{
        struct stat st;

        if (!is_sparse(record->parameters) && fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)record->size_bytes) < 0)
                return fail(error, errno, "make image", record->id);
        /* allocated blocks beyond the end count as the image's; some filesystems have fewer than were asked for */
        if (fstat(fd, &st) < 0)
                return fail(error, errno, "fstat", record->id);
        st.st_size = (off_t)record->size_bytes;
        *ret_owed_bytes = pool_image_owed(&st);
        if (ftruncate(fd, (off_t)record->size_bytes) < 0)
                return fail(error, errno, "make image", record->id);
        if (fsync(fd) < 0 || fsync(pool_fd) < 0)
                return fail(error, errno, "fsync", record->id);
        return 0;
}

/* The size is set last: an image of size 0 is one that a killed process left. */
static int create(const struct config *config, const struct pool *pool, const struct provision_record *record,
                  struct pool_item *ret_item, struct error *error)
{
        cleanup_close int pool_fd = pool_use(config, pool, error);
        cleanup_pool_change struct pool_change change = POOL_CHANGE_NONE;
        cleanup_close int fd = -EBADF;
        uint64_t owed_bytes = 0;
        struct stat st;
        int r;

        (void)ret_item;
        if (pool_fd < 0)
                return pool_fd;
        pool_change_begin(config->state_dir, pool_fd, &change);
        fd = open_in(pool_fd, pool, record->id, O_RDWR | O_CREAT, error);
        pool_change_renew(&change);
        if (fd < 0)
                return fd;
        if (fstat(fd, &st) < 0)
                return fail(error, errno, "fstat", record->id);
        if (st.st_size != 0)
                return fail_because(error, EEXIST, "make image", record->id, "%s/%s already exists, with %lld bytes",
                                    pool->path, record->id, (long long)st.st_size);
        r = fill(fd, pool_fd, record, &owed_bytes, error);
        if (r < 0)
                (void)unlinkat(pool_fd, record->id, 0); /* it was empty, and the pool's lock keeps it ours */
        else
                pool_change_end(&change, (int64_t)record->size_bytes, (int64_t)owed_bytes);
        return r;
}

static int look(const struct config *config, const struct pool *pool, const char *id, struct pool_item *ret_item,
                struct error *error)
{
        struct stat st;
        cleanup_close int fd = pool_loop_open(config, pool, id, O_RDONLY, &st, error);

        if (fd < 0)
                return fd;
        *ret_item = (struct pool_item){ .size_bytes = (uint64_t)st.st_size, .ours = true };
        (void)text_copy(ret_item->id, sizeof ret_item->id, id);
        (void)snprintf(ret_item->path, sizeof ret_item->path, "%s/%s", pool->path, id);
        return 0;
}

static int match(const struct loop_device *device, void *argument, struct error *error)
{
        const struct stat *st = argument;

        if (!loop_device_is_over(device, st))
                return 0;
        return fail_because(error, EBUSY, "look for users", device->path, "it is attached as %s; detach it first",
                            device->path);
}

static int check_unused(const struct config *config, const struct pool *pool, const char *id, struct error *error)
{
        struct stat st;
        cleanup_close int fd = pool_loop_open(config, pool, id, O_RDONLY, &st, error);

        if (fd < 0)
                return fd == -ENOENT ? 0 : fd;
        return loop_device_each_over(fd, match, &st, error);
}

static int match_looked_at(const struct loop_device *device, void *argument, struct error *error)
{
        const struct stat *st = argument;

        (void)error;
        if (!loop_device_is_over(device, st))
                return 0;
        return loop_device_is_looked_at(device) ? 1 : -EBUSY;
}

/* Its device was detached, and is neither mounted nor opened exclusively. */
static bool is_looked_at(const struct config *config, const struct pool *pool, const char *id)
{
        struct error ignored; /* check_unused() tells it */
        cleanup_close int pool_fd = pool_open(config, pool, &ignored);
        struct stat st;

        return pool_fd >= 0 && fstatat(pool_fd, id, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
               loop_device_each(match_looked_at, &st, &ignored) >= 0;
}

/* Holes of a sparse image are not read. */
static int is_blank(const struct config *config, const struct pool *pool, const char *id, struct error *error)
{
        struct stat st;
        cleanup_close int fd = pool_loop_open(config, pool, id, O_RDONLY, &st, error);
        static char bytes[65536];
        off_t at = 0;
        ssize_t n = 0;

        if (fd < 0)
                return fd;
        while ((at = lseek(fd, at, SEEK_DATA)) >= 0 && (n = read(fd, bytes, sizeof bytes)) > 0) {
                for (ssize_t i = 0; i < n; i++)
                        if (bytes[i] != 0)
                                return 0;
                at += n;
        }
        return n < 0 || (at < 0 && errno != ENXIO) ? fail(error, errno, "read", id) : 1;
}

/* One that is sparse stays so: nobody has kept room for the blocks that it lacks. */
static int make_blank(int fd, off_t size, bool is_whole)
{
        if (is_whole && fallocate(fd, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, 0, size) == 0)
                return 0; /* it has not been without its blocks */
        if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, size) < 0)
                return -errno;
        return is_whole && fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, size) < 0 ? -errno : 0;
}

/* With the lock of a change, a count does not take the image for one that has all its blocks. */
static int wipe(const struct config *config, const struct pool *pool, const char *id, struct error *error)
{
        cleanup_close int pool_fd = pool_open(config, pool, error);
        cleanup_pool_change struct pool_change change = POOL_CHANGE_NONE;
        cleanup_close int fd = pool_fd < 0 ? pool_fd : open_in(pool_fd, pool, id, O_RDWR, error);
        uint64_t promised;
        struct stat st;
        int r;

        if (fd < 0)
                return fd;
        if (fstat(fd, &st) < 0)
                return fail(error, errno, "fstat", id);
        if (st.st_size == 0)
                return 0;
        pool_change_begin(config->state_dir, pool_fd, &change);
        promised = pool_image_promised(pool_fd, id, &st);
        if ((r = pool_sums_watch(config->state_dir, pool_fd, id, promised, error)) < 0)
                return r;
        if ((r = make_blank(fd, st.st_size, promised == 0)) < 0)
                return fail(error, -r, "wipe", id);
        (void)fremovexattr(fd, POOL_IMAGE_NAMESPACE); /* it holds nothing that is anybody's; most often there is none */
        if (fsync(fd) < 0)
                return fail(error, errno, "fsync", id);
        pool_change_end(&change, 0, 0);
        return 0;
}

/*
 * The filesystem shows nobody what was in its blocks; it frees them when the descriptor is closed, which may take long.
 */
static int remove_image(const struct config *config, const struct pool *pool, const char *id, struct error *error)
{
        cleanup_close int pool_fd = pool_open(config, pool, error);
        cleanup_pool_change struct pool_change change = POOL_CHANGE_NONE;
        cleanup_close int fd = -EBADF;
        uint64_t promised;
        struct stat st;

        if (pool_fd < 0)
                return pool_fd;
        pool_change_begin(config->state_dir, pool_fd, &change);
        promised = pool_change_promised(&change, id);
        fd = openat(pool_fd, id, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
                st.st_size = 0;
        if (unlinkat(pool_fd, id, 0) < 0 && errno != ENOENT)
                return fail(error, errno, "remove image", id);
        pool_change_renew(&change);
        pool_change_unwatch(&change, id);
        pool_change_end(&change, -(int64_t)st.st_size, -(int64_t)promised);
        return fsync(pool_fd) < 0 ? fail(error, errno, "fsync", pool->path) : 0;
}

/* Their content needs blocks of its own only as it is written. */
static const char *const copy_parameters[] = { "preallocate", "false", NULL };

static const struct hint hints[] = {
        { OPERATION_OPEN_POOL, ENODEV,
          "mount the pool's filesystem; if the directory is right as it is, remove .flexgraft-pool from it, if it has one, "
          "and make an empty file of that name" },
        {},
};

const struct pool_kind pool_loop = { .type = "loop",
                                     .needs = NEED(LOOP) | NEED(LOOP_CONFIGURE),
                                     .hints = hints,
                                     .keys = keys,
                                     .parameters = parameters_of_volumes,
                                     .has_images = true,
                                     .read = read_keys,
                                     .locate = locate,
                                     .measure = measure,
                                     .choose_id = choose_id,
                                     .create = create,
                                     .look = look,
                                     .check_unused = check_unused,
                                     .is_looked_at = is_looked_at,
                                     .is_blank = is_blank,
                                     .keep_namespace = pool_loop_keep_namespace,
                                     .wipe = wipe,
                                     .can_share = pool_loop_can_share,
                                     .copy_parameters = copy_parameters,
                                     .copy = pool_loop_copy,
                                     .open_content = pool_loop_open_content,
                                     .close_content = pool_loop_close_content,
                                     .sync = pool_loop_sync,
                                     .restore = pool_loop_restore,
                                     .unrestore = pool_loop_unrestore,
                                     .remove = remove_image,
                                     .each = each };
