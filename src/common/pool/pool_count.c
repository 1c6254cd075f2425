/* SPDX-License-Identifier: Apache-2.0 */
#include "pool/pool_count.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/file_copy.h"
#include "base/text.h"
#include "block/loop.h"

#define BLOCK_BYTES 512U /* of st_blocks */
#define MARK_SIZE 24     /* a number */

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

uint64_t pool_image_promise(int pool_fd, const char *name, struct stat *ret_st)
{
        if (fstatat(pool_fd, name, ret_st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(ret_st->st_mode))
                return 0;
        return pool_image_promised(pool_fd, name, ret_st);
}

/* ---- what is attached */

static int note_inode(const struct loop_device *device, void *argument, struct error *error)
{
        struct pool_attached *attached = argument;

        (void)error;
        if (device->file_device != attached->device)
                return 0;
        if (attached->count == attached->room) {
                size_t room = attached->room > 0 ? 2 * attached->room : 64;
                uint64_t *grown = reallocarray(attached->inodes, room, sizeof *grown);

                if (grown == NULL)
                        return -ENOMEM;
                attached->inodes = grown;
                attached->room = room;
        }
        attached->inodes[attached->count++] = device->file_inode;
        return 0;
}

static int compare_inodes(const void *one, const void *other)
{
        const uint64_t *a = one;
        const uint64_t *b = other;

        return (*a > *b) - (*a < *b);
}

int pool_attached_add(struct pool_attached *attached)
{
        struct error ignored; /* of a loop device, which has another caller */
        int r = loop_device_each(note_inode, attached, &ignored);

        if (attached->count > 0)
                qsort(attached->inodes, attached->count, sizeof attached->inodes[0], compare_inodes);
        return r;
}

bool pool_attached_has(const struct pool_attached *attached, uint64_t inode)
{
        return attached->count > 0 &&
               bsearch(&inode, attached->inodes, attached->count, sizeof attached->inodes[0], compare_inodes) != NULL;
}

void pool_attached_release(struct pool_attached *attached)
{
        free(attached->inodes);
        *attached = (struct pool_attached){};
}

/* ---- marks: links to a number, which are there whole or not at all */

int pool_mark(int files_fd, const char *name, uint64_t promised_bytes)
{
        char number[MARK_SIZE];

        (void)snprintf(number, sizeof number, "%llu", (unsigned long long)promised_bytes);
        return symlinkat(number, files_fd, name) < 0 && errno != EEXIST ? -errno : 0;
}

int pool_mark_read(int files_fd, const char *name, uint64_t *ret_promised_bytes)
{
        char number[MARK_SIZE];
        ssize_t n = readlinkat(files_fd, name, number, sizeof number - 1);

        if (n < 0)
                return -errno;
        number[n] = '\0';
        return text_number(number, UINT64_MAX, ret_promised_bytes) ? 0 : -EINVAL;
}

/* ---- counting */

struct image {
        char name[NAME_MAX + 1];
        uint64_t inode;
        uint64_t promised_bytes;
        bool shares;
        bool marked;
};

struct count {
        struct pool_use use;
        struct image *images; /* owned */
        size_t images_count;
        size_t room;
        int pool_fd;
        int files_fd; /* negative: the images are only counted */
        struct pool_attached attached;
};

static void count_release(struct count *count)
{
        free(count->images);
        pool_attached_release(&count->attached);
}
#define cleanup_count __attribute__((cleanup(count_release)))

/* 0, or -ENOMEM. */
static int note(struct count *count, const char *name, const struct stat *st, uint64_t promised_bytes)
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
        *image = (struct image){ .inode = st->st_ino,
                                 .promised_bytes = promised_bytes,
                                 .shares = (st->st_mode & POOL_IMAGE_SHARES) != 0 };
        (void)text_copy(image->name, sizeof image->name, name); /* an entry's name */
        return 0;
}

#define SUM_MAX ((uint64_t)INT64_MAX) /* as much as a sum that is kept can be (pool_sums.c) */

/* One image may be nearly as large, so that two would make the sum small. */
static void add(uint64_t *sum, uint64_t bytes)
{
        *sum = bytes < SUM_MAX - *sum ? *sum + bytes : SUM_MAX;
}

static int add_image(const char *name, const struct stat *st, void *argument, struct error *error)
{
        struct count *count = argument;
        uint64_t promised = pool_image_promised(count->pool_fd, name, st);
        int r = count->files_fd >= 0 ? note(count, name, st, promised) : 0;

        if (r < 0)
                return fail(error, -r, "count images", name);
        add(&count->use.full_bytes, (uint64_t)st->st_size);
        add(&count->use.owed_bytes, promised);
        return 0;
}

static int by_name(const void *one, const void *other)
{
        return strcmp(((const struct image *)one)->name, ((const struct image *)other)->name);
}

static struct image *find_image(struct count *count, const char *name)
{
        struct image sought = {};

        (void)text_copy(sought.name, sizeof sought.name, name);
        return count->images_count == 0
                       ? NULL
                       : bsearch(&sought, count->images, count->images_count, sizeof *count->images, by_name);
}

/* Those of images are removed, or are of images that are counted. */
static int each_mark(struct count *count, bool remove)
{
        DIR *list = file_list(count->files_fd, ".");
        const struct dirent *entry;

        if (list == NULL)
                return -errno;
        while ((entry = readdir(list)) != NULL) {
                struct image *image = entry->d_name[0] == '.' || remove ? NULL : find_image(count, entry->d_name);

                if (image != NULL)
                        image->marked = true;
                else if (entry->d_name[0] != '.')
                        (void)unlinkat(count->files_fd, entry->d_name, 0); /* one that stays is of no image */
        }
        (void)closedir(list); /* only read from */
        return 0;
}

/* With what was counted, whatever another had noted. */
static int mark(int files_fd, const struct image *image)
{
        uint64_t noted = 0;
        int r;

        do {
                if (unlinkat(files_fd, image->name, 0) < 0 && errno != ENOENT)
                        return -errno;
                r = pool_mark(files_fd, image->name, image->promised_bytes);
        } while (r == 0 && pool_mark_read(files_fd, image->name, &noted) == 0 && noted != image->promised_bytes);
        return r;
}

/*
 * What was attached at any moment since the marks were removed, before the images were looked at, has a mark again, with
 * what was counted. One that is attached is seen at a loop device, or else was attached after this look, and so after
 * it was counted; then it has made its mark itself, with the same number. One that was detached since has its mark still.
 */
static int put_marks(struct count *count)
{
        int r;

        if (count->images_count > 0)
                qsort(count->images, count->images_count, sizeof *count->images, by_name);
        if ((r = pool_attached_add(&count->attached)) < 0 || (r = each_mark(count, /* remove= */ false)) < 0)
                return r;
        for (size_t i = 0; r == 0 && i < count->images_count; i++) {
                const struct image *image = &count->images[i];

                if (image->marked || image->shares || pool_attached_has(&count->attached, image->inode))
                        r = mark(count->files_fd, image);
        }
        return r;
}

/* Errors: those of reading the pool. */
int pool_count(int pool_fd, int files_fd, struct pool_use *ret_use, struct error *error)
{
        cleanup_count struct count count = { .files_fd = files_fd, .pool_fd = pool_fd };
        struct stat pool;
        bool marks;
        int r;

        if (fstat(pool_fd, &pool) < 0)
                return fail(error, errno, "fstat", "pool");
        count.attached.device = pool.st_dev;
        marks = files_fd >= 0 && each_mark(&count, /* remove= */ true) == 0 && pool_attached_add(&count.attached) == 0;
        if (!marks)
                count.files_fd = -EBADF;
        if ((r = pool_images_each(pool_fd, add_image, &count, error)) < 0)
                return r;
        *ret_use = count.use;
        if (count.use.full_bytes == SUM_MAX || count.use.owed_bytes == SUM_MAX)
                return 0; /* what is taken from such a sum later would leave too little */
        return marks && put_marks(&count) == 0;
}
