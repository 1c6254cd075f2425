/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/kinds/loop_image.h"
#include "volume/kind.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/text.h"
#include "block/content.h"
#include "block/loop.h"
#include "pool/pool.h"
#include "pool/pool_count.h"
#include "pool/pool_kind.h"
#include "pool/pool_sums.h"
#include "pool/record.h"
#include "process/log.h"
#include "provision/image.h"
#include "volume/provisioned.h"

#define SECTOR_LEAST 512U /* no filesystem has smaller ones */

void loop_image_release(struct loop_image *image)
{
        fd_close(&image->fd);
        fd_close(&image->pool_fd);
}
int loop_image_look(struct loop_image *image, struct error *error)
{
        image->fd = file_open_leased(image->pool_fd, image->name, O_RDWR | O_NOFOLLOW, 0);
        if (image->fd == -EROFS || image->fd == -EACCES || image->fd == -EPERM) {
                image->read_only = true;
                image->fd = file_open_leased(image->pool_fd, image->name, O_RDONLY | O_NOFOLLOW, 0);
        }
        if (image->fd < 0)
                return fail(error, -image->fd, OPERATION_OPEN_IMAGE, image->path);
        if (fstat(image->fd, &image->st) < 0)
                return fail(error, errno, "fstat", image->path);
        if (!S_ISREG(image->st.st_mode))
                return fail_because(error, EINVAL, OPERATION_OPEN_IMAGE, image->path, "%s is not a regular file",
                                    image->path);
        return 0;
}

/* Whether the record names an image: an attached volume keeps it. */
static bool has_recorded(const struct volume_call *call)
{
        return call->recorded && call->record.source[0] == '/';
}

/* Whether that image is in the pool; NULL: the default. */
static bool is_recorded(const struct volume_call *call, const char *name, struct pool *ret_pool)
{
        struct error ignored;

        return pool_find(&call->config, name != NULL ? name : POOL_DEFAULT, ret_pool, &ignored) == 0 &&
               pool_file(ret_pool, call->record.source) != NULL;
}

/* In no pool: another program made it. */
static int locate_recorded(const struct volume_call *call, struct loop_image *image, struct error *error)
{
        const char *last = strrchr(call->record.source, '/') + 1;
        char directory[PATH_MAX];

        (void)snprintf(directory, sizeof directory, "%.*s", (int)(last - call->record.source), call->record.source);
        (void)text_copy(image->path, sizeof image->path, call->record.source);
        (void)text_copy(image->name, sizeof image->name, last);
        image->pool_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return image->pool_fd < 0 ? fail(error, errno, OPERATION_OPEN_POOL, directory) : 0;
}

int loop_image_locate(const struct volume_call *call, struct loop_image *image, struct error *error)
{
        cleanup_provision_record struct provision_record made = {};
        struct pool where;
        const char *pool;
        const char *name;
        int length;
        int r;

        if ((r = volume_request_option(call->request, "pool", &pool, error)) < 0 ||
            (r = volume_request_option(call->request, "image", &name, error)) < 0)
                return r;
        if (pool == NULL && name == NULL) {
                r = provisioned_find(call, &kind_loop, &made, error);
                if (r < 0 && r != -ENOENT)
                        return r;
                if (r == 0) {
                        pool = made.pool;
                        name = made.id;
                }
                if (has_recorded(call) && !is_recorded(call, pool, &where))
                        return locate_recorded(call, image, error);
                if (has_recorded(call))
                        name = strrchr(call->record.source, '/') + 1;
        }
        if (name == NULL)
                length = snprintf(image->name, sizeof image->name, "%s" POOL_IMAGE_SUFFIX, call->request->name);
        else
                length = snprintf(image->name, sizeof image->name, "%s", name);
        if (length >= (int)sizeof image->name)
                return fail_because(error, ENAMETOOLONG, OPERATION_OPEN_IMAGE, call->request->name,
                                    "the image's name is too long; give a shorter one with \"image\"");
        if (image->name[0] == '.' || strchr(image->name, '/') != NULL)
                return fail_because(error, EINVAL, OPERATION_OPEN_IMAGE, image->name,
                                    "\"%.200s\" is no file name: \"image\" has no \"/\" and does not begin with \".\"",
                                    image->name);
        if ((r = pool_find(&call->config, pool != NULL ? pool : POOL_DEFAULT, &where, error)) < 0)
                return r;
        image->pool_fd = pool_use(&call->config, &where, error);
        if (image->pool_fd < 0)
                return image->pool_fd;
        image->pool = where;
        (void)text_copy(image->path, sizeof image->path, where.path);
        length = (int)strlen(image->path);
        if (length + 1 + (int)strlen(image->name) >= PATH_MAX)
                return fail(error, ENAMETOOLONG, OPERATION_OPEN_IMAGE, image->name);
        (void)snprintf(image->path + length, PATH_MAX - (size_t)length, "/%s", image->name);
        return 0;
}

int loop_image_locate_own(const struct volume_call *call, struct loop_image *image, struct error *error)
{
        return call->recorded && call->record.source[0] == '/' ? locate_recorded(call, image, error)
                                                               : loop_image_locate(call, image, error);
}

/* size_bytes 0: it is not made. */
static int describe(const struct volume_call *call, const struct loop_image *image, uint64_t size_bytes,
                    struct provision_image *ret_image, struct error *error)
{
        bool preallocate;
        bool kata;
        int r;

        if ((r = volume_request_flag(call->request, LOOP_IMAGE_ALLOCATES, &preallocate, error)) < 0 ||
            (r = volume_request_flag(call->request, POOL_FOR_MACHINES, &kata, error)) < 0)
                return r;
        *ret_image = (struct provision_image){
                .name = call->request->name,
                .driver = call->driver[0] != '\0' ? call->driver : "flexgraft",
                .fs_type = call->request->fs_type,
                .pool = &image->pool,
                .id = image->name,
                .size_bytes = (size_bytes + LOOP_IMAGE_STEP_BYTES - 1) / LOOP_IMAGE_STEP_BYTES * LOOP_IMAGE_STEP_BYTES,
                .preallocate = preallocate,
                .kata = kata,
                .exists = image->fd >= 0 && image->st.st_size > 0, /* an empty one a killed call began to make */
        };
        return 0;
}

int loop_image_check_owner(const struct volume_call *call, const struct loop_image *image, struct error *error)
{
        struct provision_image wanted;
        int r;

        if (image->pool.kind == NULL || call->provisioned.dir_fd < 0)
                return 0;
        r = describe(call, image, 0, &wanted, error);
        return r < 0 ? r : provision_image_check(&call->config, &call->provisioned, &wanted, error);
}

static int ensure(const struct volume_call *call, struct loop_image *image, uint64_t size_bytes, struct error *error)
{
        struct provision_image wanted;
        int r = describe(call, image, size_bytes, &wanted, error);

        if (r < 0)
                return r;
        if (size_bytes == 0)
                return provision_image_check(&call->config, &call->provisioned, &wanted, error);
        if ((r = provision_image_ensure(&call->config, &call->provisioned, &wanted, &image->created, error)) < 0)
                return r;
        if (wanted.exists)
                return 0;
        fd_close(&image->fd);
        return loop_image_look(image, error);
}

int loop_image_open(const struct volume_call *call, struct loop_image *image, struct error *error)
{
        uint64_t size_bytes;
        bool empty;
        int r;

        if ((r = volume_request_size(call->request, "size", &size_bytes, error)) < 0)
                return r;
        r = loop_image_look(image, error);
        if (r < 0 && r != -ENOENT)
                return r;
        if (r == 0 && image->read_only && !call->request->read_only)
                return fail_because(error, EROFS, OPERATION_OPEN_IMAGE, image->path, "the image %s cannot be written",
                                    image->path);
        empty = r == -ENOENT || image->st.st_size == 0;
        if (empty && (size_bytes == 0 || image->pool.kind == NULL))
                return fail_because(error, ENOENT, OPERATION_OPEN_IMAGE, image->path,
                                    "there is no image %s; set \"size\" to make one", image->path);
        return image->pool.kind == NULL ? 0 : ensure(call, image, size_bytes, error);
}

void loop_image_undo(const struct volume_call *call, const struct loop_image *image)
{
        struct provision_image made;
        struct error ignored; /* the failure before is the one to report */

        if (image->created && describe(call, image, 0, &made, &ignored) == 0)
                provision_image_undo(&call->config, &call->provisioned, &made);
}

int loop_image_watch(const struct volume_call *call, struct loop_image *image, struct error *error)
{
        struct stat st;

        if (image->pool.kind == NULL)
                return 0;
        if (!image->watched)
                image->promised_bytes = pool_image_promise(image->pool_fd, image->name, &st);
        image->watched = true;
        return pool_sums_watch(call->config.state_dir, image->pool_fd, image->name, image->promised_bytes, error);
}

unsigned loop_image_sector_bytes(const struct loop_image *image, uint64_t offset_bytes)
{
        const unsigned of_disk = loop_device_block_bytes(image->fd);
        const unsigned of_content = of_disk > SECTOR_LEAST ? content_block_bytes(image->fd, offset_bytes) : 0;

        return of_content > 0 && of_content < of_disk ? of_content : 0;
}

/* An image that has all its blocks gets those that it grows by. */
static int fill(const struct volume_call *call, const struct loop_image *image, uint64_t size_bytes,
                struct error *error)
{
        bool preallocate;
        int r = volume_request_flag(call->request, LOOP_IMAGE_ALLOCATES, &preallocate, error);

        if (r < 0 || !preallocate)
                return r;
        if (fallocate(image->fd, FALLOC_FL_KEEP_SIZE, image->st.st_size, (off_t)size_bytes - image->st.st_size) == 0)
                return 0;
        r = fail(error, errno, "grow image", image->path);
        if (ftruncate(image->fd, image->st.st_size) < 0) /* gives back what it got */
                log_say("%s keeps the room that it got beyond its end", image->path);
        return r;
}

int loop_image_grow(const struct volume_call *call, struct loop_image *image, uint64_t size_bytes, struct error *error)
{
        cleanup_pool_change struct pool_change change = POOL_CHANGE_NONE;
        struct stat st;
        int r;

        if (image->read_only)
                return fail(error, EROFS, "grow image", image->path);
        /* that of an attached volume, too, which may be in a pool or not */
        if (pool_counts(image->name))
                pool_change_begin(call->config.state_dir, image->pool_fd, &change);
        /* a count has not seen what it owes before it is larger */
        if (change.counted && (r = pool_sums_watch(call->config.state_dir, image->pool_fd, image->name,
                                                   pool_image_promise(image->pool_fd, image->name, &st), error)) < 0)
                return r;
        if (fstat(image->fd, &image->st) < 0)
                return fail(error, errno, "fstat", image->path);
        /* another volume that names the image may have grown it */
        if ((uint64_t)image->st.st_size >= size_bytes) {
                pool_change_end(&change, 0, 0);
                return 0;
        }
        if ((r = fill(call, image, size_bytes, error)) < 0)
                return r;
        if (ftruncate(image->fd, (off_t)size_bytes) < 0)
                return fail(error, errno, "grow image", image->path);
        pool_change_end(&change, (int64_t)size_bytes - image->st.st_size, 0);
        if (fsync(image->fd) < 0) /* the record will say that it is as large */
                return fail(error, errno, "fsync", image->path);
        image->st.st_size = (off_t)size_bytes;
        log_say("grew the image %s to %llu bytes", image->path, (unsigned long long)size_bytes);
        return 0;
}

int loop_image_check_policy(const struct volume_call *call, const struct loop_image *image, struct error *error)
{
        cleanup_provision_record struct provision_record made = {};
        const char *name;
        const char *pool;
        uint64_t size_bytes;
        struct error ignored;
        struct stat st;
        int r;

        if ((r = volume_request_option(call->request, "image", &name, error)) < 0 ||
            (r = volume_request_option(call->request, "pool", &pool, error)) < 0 ||
            (r = volume_request_size(call->request, "size", &size_bytes, error)) < 0)
                return r;
        if (name == NULL || (call->recorded && strcmp(call->record.source, image->path) == 0) ||
            pool_image_is_of(name, call->request->name) ||
            (provision_record_find(call->config.state_dir, call->request->name, &made, &ignored) == 0 &&
             strcmp(made.id, name) == 0 && (pool == NULL || strcmp(made.pool, pool) == 0)))
                return 0;
        r = fstatat(image->pool_fd, image->name, &st, AT_SYMLINK_NOFOLLOW);
        if (r < 0 ? errno == ENOENT : size_bytes > 0 && S_ISREG(st.st_mode) && st.st_size == 0)
                return 0;
        return policy_check_image(&call->policy, pool != NULL ? pool : POOL_DEFAULT, name, error);
}
