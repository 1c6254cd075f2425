/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/loop_image.h"
#include "volume/kind.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "process/log.h"
#include "provision/pool.h"
#include "volume/provisioned.h"

#define SUFFIX ".img"

void loop_image_release(struct loop_image *image)
{
        fd_close(&image->fd);
        fd_close(&image->pool_fd);
}
int loop_image_look(struct loop_image *image, struct error *error)
{
        image->fd = openat(image->pool_fd, image->name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (image->fd < 0 && (errno == EROFS || errno == EACCES || errno == EPERM)) {
                image->read_only = true;
                image->fd =
                        openat(image->pool_fd, image->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        }
        if (image->fd < 0)
                return fail(error, errno, "open image", image->path);
        if (fstat(image->fd, &image->st) < 0)
                return fail(error, errno, "fstat", image->path);
        if (!S_ISREG(image->st.st_mode))
                return fail_because(error, EINVAL, "open image", image->path, "%s is not a regular file", image->path);
        return 0;
}

/* An attached volume keeps its image. */
static int locate_recorded(const struct volume_call *call, struct loop_image *image, struct error *error)
{
        const char *last = strrchr(call->record.source, '/') + 1;
        char directory[PATH_MAX];

        (void)snprintf(directory, sizeof directory, "%.*s", (int)(last - call->record.source), call->record.source);
        (void)text_copy(image->path, sizeof image->path, call->record.source);
        (void)text_copy(image->name, sizeof image->name, last);
        image->pool_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return image->pool_fd < 0 ? fail(error, errno, "open pool", directory) : 0;
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
        if (call->recorded && call->record.source[0] == '/' && pool == NULL && name == NULL)
                return locate_recorded(call, image, error);
        if (pool == NULL && name == NULL) {
                r = provisioned_find(call, &kind_loop, &made, error);
                if (r < 0 && r != -ENOENT)
                        return r;
                if (r == 0) {
                        pool = made.pool;
                        name = made.id;
                }
        }
        if (name == NULL)
                length = snprintf(image->name, sizeof image->name, "%s" SUFFIX, call->request->name);
        else
                length = snprintf(image->name, sizeof image->name, "%s", name);
        if (length >= (int)sizeof image->name)
                return fail_because(error, ENAMETOOLONG, "open image", call->request->name,
                                    "the image's name is too long; give a shorter one with \"image\"");
        if (image->name[0] == '.' || strchr(image->name, '/') != NULL)
                return fail_because(error, EINVAL, "open image", image->name,
                                    "\"%.200s\" is no file name: \"image\" has no \"/\" and does not begin with \".\"",
                                    image->name);
        if ((r = pool_find(&call->config, pool != NULL ? pool : POOL_DEFAULT, &where, error)) < 0)
                return r;
        image->pool_fd = pool_open(&call->config, &where, error);
        if (image->pool_fd < 0)
                return image->pool_fd;
        (void)text_copy(image->path, sizeof image->path, where.path);
        length = (int)strlen(image->path);
        if (length + 1 + (int)strlen(image->name) >= PATH_MAX)
                return fail(error, ENAMETOOLONG, "open image", image->name);
        (void)snprintf(image->path + length, PATH_MAX - (size_t)length, "/%s", image->name);
        return 0;
}

int loop_image_locate_own(const struct volume_call *call, struct loop_image *image, struct error *error)
{
        return call->recorded && call->record.source[0] == '/' ? locate_recorded(call, image, error)
                                                               : loop_image_locate(call, image, error);
}

/* An empty image is one that a killed call began to make. */
static int make_file(const struct volume_call *call, struct loop_image *image, uint64_t size_bytes, struct error *error)
{
        const char *preallocate;
        int r = volume_request_option(call->request, "preallocate", &preallocate, error);

        if (r < 0)
                return r;
        if (image->fd < 0) {
                image->fd =
                        openat(image->pool_fd, image->name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
                if (image->fd < 0)
                        return fail(error, errno, "make image", image->path);
                image->created = true;
        }
        image->made = true;
        size_bytes = (size_bytes + LOOP_IMAGE_STEP_BYTES - 1) / LOOP_IMAGE_STEP_BYTES * LOOP_IMAGE_STEP_BYTES;
        /* the size is set last: until then the image counts as not made */
        if (preallocate != NULL && strcmp(preallocate, "true") == 0)
                r = fallocate(image->fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)size_bytes);
        if (r < 0 || ftruncate(image->fd, (off_t)size_bytes) < 0)
                return fail(error, errno, "make image", image->path);
        if (fstat(image->fd, &image->st) < 0)
                return fail(error, errno, "fstat", image->path);
        log_say("made the image %s of %llu bytes", image->path, (unsigned long long)size_bytes);
        return 0;
}

int loop_image_open(const struct volume_call *call, struct loop_image *image, struct error *error)
{
        uint64_t size_bytes;
        int r;

        if ((r = volume_request_size(call->request, "size", &size_bytes, error)) < 0)
                return r;
        r = loop_image_look(image, error);
        if (r < 0 && r != -ENOENT)
                return r;
        if (r == 0 && image->read_only && !call->request->read_only)
                return fail_because(error, EROFS, "open image", image->path, "the image %s cannot be written",
                                    image->path);
        if (r == 0 && image->st.st_size > 0)
                return 0;
        if (size_bytes == 0)
                return fail_because(error, ENOENT, "open image", image->path,
                                    "there is no image %s; set \"size\" to make one", image->path);
        return make_file(call, image, size_bytes, error);
}
