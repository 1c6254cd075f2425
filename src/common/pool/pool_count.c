/* SPDX-License-Identifier: Apache-2.0 */
#include "pool/pool_count.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/file_copy.h"
#include "base/text.h"
#include "block/loop.h"

#define BLOCK_BYTES 512U /* of st_blocks */

bool pool_counts(const char *name)
{
        return name[0] != '.' && text_ends(name, POOL_IMAGE_SUFFIX);
}

bool pool_image_is_of(const char *name, const char *volume)
{
        return text_starts(name, volume) && strcmp(name + strlen(volume), POOL_IMAGE_SUFFIX) == 0;
}

int pool_images_each(int pool_fd, pool_image_function *function, void *argument, struct error *error)
{
        DIR *list = file_list(pool_fd, ".");
        const struct dirent *entry;
        int r = 0;

        if (list == NULL)
                return fail(error, errno, OPERATION_OPEN_POOL, "images");
        while (r == 0 && (entry = readdir(list)) != NULL) {
                struct stat st;

                if (!pool_counts(entry->d_name) || fstatat(pool_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
                    !S_ISREG(st.st_mode))
                        continue;
                r = function(entry->d_name, &st, argument, error);
        }
        (void)closedir(list); /* only read from */
        return r;
}

uint64_t pool_image_owed(const struct stat *st)
{
        uint64_t size = (uint64_t)st->st_size;
        uint64_t had = (uint64_t)st->st_blocks * BLOCK_BYTES;

        return had < size ? size - had : 0;
}

uint64_t pool_image_promised(int pool_fd, const char *name, const struct stat *st)
{
        uint64_t owed = pool_image_owed(st);
        cleanup_close int fd = -EBADF;

        if ((st->st_mode & POOL_IMAGE_SHARES) == 0)
                return owed;
        fd = file_open_leased(pool_fd, name, O_RDONLY | O_NOFOLLOW, 0);
        return fd < 0 ? (uint64_t)st->st_size : owed + file_shared_bytes(fd, (uint64_t)st->st_size);
}

struct image {
        char name[NAME_MAX + 1];
        uint64_t inode;
        bool watched;
};

struct count {
        struct pool_use use;
        struct image *images; /* owned */
        size_t images_count;
        size_t room;
        int pool_fd;
        uint64_t device;
        int files_fd; /* negative: the images are only counted */
};

static void count_release(struct count *count)
{
        free(count->images);
}
#define cleanup_count __attribute__((cleanup(count_release)))

/* 0, or -ENOMEM. */
static int note(struct count *count, const char *name, const struct stat *st, bool watched)
{
        struct image *image;

        if (count->images_count == count->room) {
                size_t room = count->room > 0 ? 2 * count->room : 64;
                struct image *grown = reallocarray(count->images, room, sizeof *grown);

                if (grown == NULL)
                        return -ENOMEM;
                count->images = grown;
                count->room = room;
        }
        image = &count->images[count->images_count++];
        image->inode = st->st_ino;
        image->watched = watched;
        (void)text_copy(image->name, sizeof image->name, name); /* an entry's name */
        return 0;
}

static int add_image(const char *name, const struct stat *st, void *argument, struct error *error)
{
        struct count *count = argument;
        uint64_t promised = pool_image_promised(count->pool_fd, name, st);
        int r = count->files_fd >= 0 ? note(count, name, st, promised > 0) : 0;

        if (r < 0)
                return fail(error, -r, "count images", name);
        count->use.full_bytes += (uint64_t)st->st_size;
        count->use.owed_bytes += promised;
        return 0;
}

static int by_name(const void *one, const void *other)
{
        return strcmp(((const struct image *)one)->name, ((const struct image *)other)->name);
}

/* A loop device over one of the images. */
static int watch_attached(const struct loop_device *device, void *argument, struct error *error)
{
        struct count *count = argument;

        (void)error;
        for (size_t i = 0; device->file_device == count->device && i < count->images_count; i++)
                if (count->images[i].inode == device->file_inode && !count->images[i].watched) {
                        count->images[i].watched = true;
                        return file_ensure(count->files_fd, count->images[i].name);
                }
        return 0;
}

/*
 * Names of images that need none are removed, and then those of attached ones are made: what is attached meanwhile
 * makes its name after it is attached, too.
 */
static int tidy_names(struct count *count)
{
        DIR *list = file_list(count->files_fd, ".");
        const struct dirent *entry;
        struct error ignored;
        int r = 0;

        if (list == NULL)
                return -errno;
        if (count->images_count > 0)
                qsort(count->images, count->images_count, sizeof *count->images, by_name);
        while ((entry = readdir(list)) != NULL) {
                struct image sought = {};
                const struct image *image;

                (void)text_copy(sought.name, sizeof sought.name, entry->d_name);
                image = count->images_count == 0
                                ? NULL
                                : bsearch(&sought, count->images, count->images_count, sizeof *count->images, by_name);

                if (entry->d_name[0] != '.' && (image == NULL || !image->watched))
                        (void)unlinkat(count->files_fd, entry->d_name, 0); /* one that stays does no harm */
        }
        (void)closedir(list); /* only read from */
        for (size_t i = 0; r == 0 && i < count->images_count; i++)
                if (count->images[i].watched)
                        r = file_ensure(count->files_fd, count->images[i].name);
        return r == 0 ? loop_device_each(watch_attached, count, &ignored) : r;
}

/* Errors: those of reading the pool. */
int pool_count(int pool_fd, int files_fd, struct pool_use *ret_use, struct error *error)
{
        cleanup_count struct count count = { .files_fd = files_fd, .pool_fd = pool_fd };
        struct stat pool;
        int r;

        if (fstat(pool_fd, &pool) < 0)
                return fail(error, errno, "fstat", "pool");
        count.device = pool.st_dev;
        if ((r = pool_images_each(pool_fd, add_image, &count, error)) < 0)
                return r;
        *ret_use = count.use;
        return files_fd >= 0 && tidy_names(&count) == 0;
}
