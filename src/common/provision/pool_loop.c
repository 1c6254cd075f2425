/* SPDX-License-Identifier: Apache-2.0 */
#include "provision/pool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/text.h"
#include "block/loop.h"
#include "state/volume_record.h"

#define SUFFIX ".img"
#define ALIGNMENT_BYTES 4096U
#define BLOCK_BYTES 512U /* of st_blocks */
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

static int each_in(int pool_fd, const struct pool *pool, pool_item_function *function, void *argument,
                   struct error *error)
{
        int list_fd = openat(pool_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *list = list_fd < 0 ? NULL : fdopendir(list_fd);
        const struct dirent *entry;
        int r = 0;

        if (list == NULL) {
                r = fail(error, errno, "open pool", pool->path);
                fd_close(&list_fd);
                return r;
        }
        while (r == 0 && (entry = readdir(list)) != NULL) {
                struct pool_item item = {};
                struct stat st;

                if (entry->d_name[0] == '.' || !text_ends(entry->d_name, SUFFIX) ||
                    fstatat(pool_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
                        continue;
                item.size_bytes = (uint64_t)st.st_size;
                (void)text_copy(item.id, sizeof item.id, entry->d_name); /* as long as a name can be */
                (void)snprintf(item.path, sizeof item.path, "%s/%s", pool->path, entry->d_name);
                r = function(&item, argument, error);
        }
        (void)closedir(list); /* only read from */
        return r;
}

static int each(const struct config *config, const struct pool *pool, pool_item_function *function, void *argument,
                struct error *error)
{
        cleanup_close int pool_fd = pool_open(config, pool, error);

        return pool_fd < 0 ? pool_fd : each_in(pool_fd, pool, function, argument, error);
}

static int place(const struct config *config, const struct pool *pool, char *ret_place, struct error *error)
{
        cleanup_close int pool_fd = pool_open(config, pool, error);
        struct stat st;

        if (pool_fd < 0)
                return pool_fd;
        if (fstat(pool_fd, &st) < 0)
                return fail(error, errno, "fstat", pool->path);
        (void)snprintf(ret_place, POOL_PLACE_SIZE, "loop:%llx:%llu", (unsigned long long)st.st_dev,
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

struct use {
        int pool_fd;
        uint64_t full_bytes; /* of images, sparse or not */
        uint64_t had_bytes;  /* blocks that they have */
};

static int add_use(const struct pool_item *item, void *argument, struct error *error)
{
        struct use *use = argument;
        struct stat st;
        uint64_t had;

        (void)error;
        if (fstatat(use->pool_fd, item->id, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return 0; /* it was removed meanwhile */
        had = (uint64_t)st.st_blocks * BLOCK_BYTES;
        use->full_bytes += item->size_bytes;
        use->had_bytes += had < item->size_bytes ? had : item->size_bytes;
        return 0;
}

/*
 * Sparse images count at full size. With maxPercent, room above that share of the filesystem is not available.
 */
static int measure(const struct config *config, const struct pool *pool, const json_t *parameters,
                   struct pool_measure *ret_measure, struct error *error)
{
        cleanup_close int pool_fd = pool_open(config, pool, error);
        struct use use = { .pool_fd = pool_fd };
        uint64_t budget;
        uint64_t left;
        uint64_t owed;
        struct statfs fs;
        int r;

        (void)parameters;
        if (pool_fd < 0)
                return pool_fd;
        if (fstatfs(pool_fd, &fs) < 0)
                return fail(error, errno, "fstatfs", pool->path);
        if ((r = each_in(pool_fd, pool, add_use, &use, error)) < 0)
                return r;
        budget = pool_share(pool, (uint64_t)fs.f_blocks * (uint64_t)fs.f_bsize);
        left = budget > use.full_bytes ? budget - use.full_bytes : 0;
        owed = use.full_bytes - use.had_bytes + kept_for_records(config, pool_fd);
        ret_measure->total_bytes = round_down(budget);
        ret_measure->available_bytes = (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize;
        ret_measure->available_bytes = ret_measure->available_bytes > owed ? ret_measure->available_bytes - owed : 0;
        if (pool->max_percent < 100 && left < ret_measure->available_bytes)
                ret_measure->available_bytes = left;
        ret_measure->available_bytes = round_down(ret_measure->available_bytes);
        ret_measure->largest_bytes = ret_measure->available_bytes;
        ret_measure->alignment_bytes = ALIGNMENT_BYTES;
        return 0;
}

static void choose_id(const struct pool *pool, const char *name, char *ret_id)
{
        char stem[VOLUME_RECORD_STEM_SIZE];

        (void)pool;
        volume_record_stem(name, stem);
        (void)snprintf(ret_id, PROVISION_ID_MAX, "%s" SUFFIX, stem);
}

static bool is_sparse(const json_t *parameters)
{
        const char *value = json_string_value(json_object_get(parameters, "preallocate"));

        return value != NULL && strcmp(value, "false") == 0;
}

static bool is_word(const json_t *value)
{
        static const char *const words[] = { "true", "false", NULL };

        return json_is_string(value) && text_among(json_string_value(value), words);
}

static const struct file_key parameters_of_volumes[] = {
        { "preallocate", "\"true\" or \"false\"", is_word, false, "true",
          "Whether an image gets all its blocks at once, or is sparse. Sparse images count at full size.", NULL },
        {},
};

static int open_in(int pool_fd, const struct pool *pool, const char *id, int flags, struct error *error)
{
        cleanup_close int fd = openat(pool_fd, id, flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
        struct stat st;

        if (fd < 0 && errno == ENOENT)
                return -ENOENT;
        if (fd < 0)
                return fail(error, errno, "open image", id);
        if (fstat(fd, &st) < 0)
                return fail(error, errno, "fstat", id);
        if (!S_ISREG(st.st_mode) || !text_ends(id, SUFFIX) || id[0] == '.' || strchr(id, '/') != NULL)
                return fail_because(error, EINVAL, "open image", id, "%s/%s is not an image", pool->path, id);
        return fd_take(&fd);
}

/* An image of a pool, and what it is. */
static int open_image(const struct config *config, const struct pool *pool, const char *id, int flags,
                      struct stat *ret_stat, struct error *error)
{
        cleanup_close int pool_fd = pool_open(config, pool, error);
        cleanup_close int fd = pool_fd < 0 ? pool_fd : open_in(pool_fd, pool, id, flags, error);

        if (fd < 0)
                return fd;
        return fstat(fd, ret_stat) < 0 ? fail(error, errno, "fstat", id) : fd_take(&fd);
}

/* The size is set last: an image of size 0 is one that a killed process left. */
static int create(const struct config *config, const struct pool *pool, const struct provision_record *record,
                  struct error *error)
{
        cleanup_close int pool_fd = pool_open(config, pool, error);
        cleanup_close int fd = -EBADF;
        struct stat st;

        if (pool_fd < 0)
                return pool_fd;
        fd = open_in(pool_fd, pool, record->id, O_RDWR | O_CREAT, error);
        if (fd < 0)
                return fd;
        if (fstat(fd, &st) < 0)
                return fail(error, errno, "fstat", record->id);
        if (st.st_size != 0)
                return fail_because(error, EEXIST, "make image", record->id, "%s/%s already exists, with %lld bytes",
                                    pool->path, record->id, (long long)st.st_size);
        if (!is_sparse(record->parameters) && fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)record->size_bytes) < 0)
                return fail(error, errno, "make image", record->id);
        if (ftruncate(fd, (off_t)record->size_bytes) < 0)
                return fail(error, errno, "make image", record->id);
        if (fsync(fd) < 0 || fsync(pool_fd) < 0)
                return fail(error, errno, "fsync", record->id);
        return 0;
}

static int look(const struct config *config, const struct pool *pool, const char *id, struct pool_item *ret_item,
                struct error *error)
{
        struct stat st;
        cleanup_close int fd = open_image(config, pool, id, O_RDONLY, &st, error);

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

        if (device->file_device != st->st_dev || device->file_inode != st->st_ino)
                return 0;
        return fail_because(error, EBUSY, "look for users", device->path, "it is attached as %s; detach it first",
                            device->path);
}

static int check_unused(const struct config *config, const struct pool *pool, const char *id, struct error *error)
{
        cleanup_close int pool_fd = pool_open(config, pool, error);
        struct stat st;

        if (pool_fd < 0)
                return pool_fd;
        if (fstatat(pool_fd, id, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return errno == ENOENT ? 0 : fail(error, errno, "stat", id);
        return loop_device_each(match, &st, error);
}

/* Holes of a sparse image are not read. */
static int is_blank(const struct config *config, const struct pool *pool, const char *id, struct error *error)
{
        struct stat st;
        cleanup_close int fd = open_image(config, pool, id, O_RDONLY, &st, error);
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

static int wipe(const struct config *config, const struct pool *pool, const char *id, struct error *error)
{
        struct stat st;
        cleanup_close int fd = open_image(config, pool, id, O_RDWR, &st, error);

        if (fd < 0)
                return fd;
        if (st.st_size > 0 && (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, st.st_size) < 0 ||
                               fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, st.st_size) < 0 || fsync(fd) < 0))
                return fail(error, errno, "wipe", id);
        return 0;
}

/* The filesystem shows nobody what was in its blocks. */
static int remove_image(const struct config *config, const struct pool *pool, const char *id, struct error *error)
{
        cleanup_close int pool_fd = pool_open(config, pool, error);

        if (pool_fd < 0)
                return pool_fd;
        if (unlinkat(pool_fd, id, 0) < 0 && errno != ENOENT)
                return fail(error, errno, "remove image", id);
        return fsync(pool_fd) < 0 ? fail(error, errno, "fsync", pool->path) : 0;
}

const struct pool_kind pool_loop = { .type = "loop",
                                     .keys = keys,
                                     .parameters = parameters_of_volumes,
                                     .read = read_keys,
                                     .place = place,
                                     .measure = measure,
                                     .choose_id = choose_id,
                                     .create = create,
                                     .look = look,
                                     .check_unused = check_unused,
                                     .is_blank = is_blank,
                                     .wipe = wipe,
                                     .remove = remove_image,
                                     .each = each };
