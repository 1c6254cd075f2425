/* SPDX-License-Identifier: Apache-2.0 */
/* pool_loop_copy.c - images with the content of others. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file_copy.h"
#include "base/interrupt.h"
#include "pool/pool.h"
#include "pool/pool_loop.h"
#include "pool/pool_sums.h"
#include "process/log.h"

#define NAMESPACE_MAX 256

int pool_loop_can_share(const struct config *config, const struct pool *pool, const char *id, bool snapshot,
                        struct error *error)
{
        cleanup_close int pool_fd = pool_open(config, pool, error);
        struct stat st;
        cleanup_close int fd = pool_fd < 0 ? pool_fd : pool_loop_open(config, pool, id, O_RDONLY, &st, error);

        (void)snapshot;
        if (fd < 0)
                return fd == -ENOENT ? fail(error, ENOENT, OPERATION_OPEN_IMAGE, id) : fd;
        return file_can_share(fd, pool_fd);
}

/* The mark comes first: a count never takes shared blocks for the image's own. */
static int fill(int from_fd, int to_fd, const char *id, bool shares)
{
        if (!shares)
                return file_copy(from_fd, to_fd, id);
        return fchmod(to_fd, 0600 | POOL_IMAGE_SHARES) < 0 ? -errno : file_share(from_fd, to_fd);
}

/*
 * Content is copied into an image that is not attached: it gets blocks until end_fill(). A filesystem that cannot mark
 * it has volume-reconcile find what it got after a count.
 */
static int begin_fill(const struct config *config, const struct pool *pool, const char *id, int fd, struct error *error)
{
        cleanup_close int pool_fd = pool_open(config, pool, error);
        uint64_t promised;
        struct stat st;

        if (pool_fd < 0)
                return pool_fd;
        promised = pool_image_promise(pool_fd, id, &st);
        (void)fchmod(fd, 0600 | POOL_IMAGE_SHARES);
        return pool_sums_watch(config->state_dir, pool_fd, id, promised, error);
}

static void end_fill(int fd)
{
        (void)fchmod(fd, 0600); /* else its blocks are asked for at each call */
}

/* Copying ends early with ECANCELED where the program is asked to end: then that is the reason. */
static int fail_fill(int r, const char *operation, const char *id, struct error *error)
{
        return r == -ECANCELED && interrupt_check(operation, id, error) < 0 ? r : fail(error, -r, operation, id);
}

/* Sharing makes it as large as the other. */
static int keep_size(int fd, off_t size)
{
        struct stat st;

        return fstat(fd, &st) < 0 || (st.st_size < size && ftruncate(fd, size) < 0) ? -errno : 0;
}

/* The image, or its copy, stays that of its Kubernetes namespace. Needs CAP_SYS_ADMIN to see whose it is. */
static int copy_namespace(int from_fd, int to_fd)
{
        char namespace[NAMESPACE_MAX];
        ssize_t n = fgetxattr(from_fd, POOL_IMAGE_NAMESPACE, namespace, sizeof namespace);

        if (n < 0)
                return errno == ENODATA || errno == ENOTSUP ? 0 : -errno;
        return fsetxattr(to_fd, POOL_IMAGE_NAMESPACE, namespace, (size_t)n, 0) < 0 ? -errno : 0;
}

int pool_loop_keep_namespace(const struct config *config, const struct pool *pool, const char *id,
                             const char *namespace, struct error *error)
{
        struct stat st;
        cleanup_close int fd = pool_loop_open(config, pool, id, O_RDONLY, &st, error);

        if (fd == -ENOENT)
                return 0;
        if (fd < 0)
                return fd;
        if (fsetxattr(fd, POOL_IMAGE_NAMESPACE, namespace, strlen(namespace), 0) == 0 && fsync(fd) == 0)
                return 0;
        if (errno != ENOTSUP && errno != EROFS && errno != EPERM)
                return fail(error, errno, "write the namespace", id);
        log_say("%s/%s cannot keep the name of its namespace: %s", pool->path, id, strerror(errno));
        return 0;
}

int pool_loop_copy(const struct config *config, const struct pool *pool, const char *id, const char *to, bool shares,
                   struct error *error)
{
        struct stat st;
        cleanup_close int from_fd = pool_loop_open(config, pool, id, O_RDONLY, &st, error);
        cleanup_close int to_fd = from_fd < 0 ? from_fd : pool_loop_open(config, pool, to, O_RDWR, &st, error);
        int r;

        if (to_fd < 0)
                return to_fd == -ENOENT ? fail(error, ENOENT, OPERATION_OPEN_IMAGE, id) : to_fd;
        if ((r = begin_fill(config, pool, to, to_fd, error)) < 0)
                return r;
        if ((r = copy_namespace(from_fd, to_fd)) < 0 || (r = fill(from_fd, to_fd, id, shares)) < 0 ||
            (r = keep_size(to_fd, st.st_size)) < 0)
                return fail_fill(r, "copy image", id, error);
        if (!shares)
                end_fill(to_fd);
        return 0;
}

int pool_loop_open_content(const struct config *config, const struct pool *pool, const char *id, bool write,
                           struct pool_content *ret_content, struct error *error)
{
        struct stat st;
        cleanup_close int fd = pool_loop_open(config, pool, id, write ? O_RDWR : O_RDONLY, &st, error);
        int r;

        *ret_content = (struct pool_content){ .fd = -EBADF, .blank = true, .filled = write };
        if (fd < 0)
                return fd == -ENOENT ? fail(error, ENOENT, OPERATION_OPEN_IMAGE, id) : fd;
        if (write && (r = begin_fill(config, pool, id, fd, error)) < 0)
                return r;
        ret_content->fd = fd_take(&fd);
        ret_content->size_bytes = (uint64_t)st.st_size;
        return 0;
}

void pool_loop_close_content(const struct config *config, const struct pool *pool, struct pool_content *content)
{
        (void)config;
        (void)pool;
        if (content->filled)
                end_fill(content->fd);
        fd_close(&content->fd);
}

int pool_loop_sync(const struct config *config, const struct pool *pool, const char *id, struct error *error)
{
        struct stat st;
        cleanup_close int fd = pool_loop_open(config, pool, id, O_RDONLY, &st, error);

        if (fd < 0)
                return fd == -ENOENT ? fail(error, ENOENT, OPERATION_OPEN_IMAGE, id) : fd;
        return fsync(fd) < 0 ? fail(error, errno, "fsync", id) : 0;
}

/* No image of a pool, and in no list of disks. */
static void put_temporary(const char *id, char *ret_name)
{
        (void)snprintf(ret_name, PROVISION_ID_MAX + 16, ".%s.restored", id);
}

int pool_loop_unrestore(const struct config *config, const struct pool *pool, const char *id, struct error *error)
{
        cleanup_close int pool_fd = pool_open(config, pool, error);
        char name[PROVISION_ID_MAX + 16];

        if (pool_fd < 0)
                return pool_fd;
        put_temporary(id, name);
        return unlinkat(pool_fd, name, 0) < 0 && errno != ENOENT ? fail(error, errno, "remove image", name) : 0;
}

/* With the lock of a change: the blocks that the old image had are free now, and promised to nobody. */
static void keep_whole(int fd, const char *id, off_t size)
{
        if (fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, size) < 0)
                log_say("the image %s is sparse from now on, for want of blocks: %s", id, strerror(errno));
}

int pool_loop_restore(const struct config *config, const struct pool *pool, const char *id, const char *from,
                      bool shares, bool *ret_torn, struct error *error)
{
        cleanup_close int pool_fd = pool_use(config, pool, error);
        cleanup_pool_change struct pool_change change = POOL_CHANGE_NONE;
        struct stat st;
        struct stat before;
        cleanup_close int from_fd = pool_fd < 0 ? pool_fd : pool_loop_open(config, pool, from, O_RDONLY, &st, error);
        cleanup_close int old_fd = from_fd < 0 ? from_fd : pool_loop_open(config, pool, id, O_RDONLY, &before, error);
        cleanup_close int fd = -EBADF;
        char name[PROVISION_ID_MAX + 16];
        uint64_t promised;
        int r;

        (void)ret_torn;
        if (old_fd < 0)
                return old_fd == -ENOENT ? fail(error, ENOENT, OPERATION_OPEN_IMAGE, from) : old_fd;
        promised = pool_image_promised(pool_fd, id, &before);
        put_temporary(id, name);
        fd = openat(pool_fd, name, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
                return fail(error, errno, "make image", name);
        if (st.st_size < before.st_size)
                st.st_size = before.st_size;
        if ((r = fill(from_fd, fd, id, shares)) < 0 || (r = keep_size(fd, st.st_size)) < 0 ||
            (r = copy_namespace(old_fd, fd)) < 0 || (r = fsync(fd) < 0 ? -errno : 0) < 0)
                goto failed;
        /* what both share, the snapshot counts, as it did before */
        if (shares && (st.st_mode & POOL_IMAGE_SHARES) != 0 && (before.st_mode & POOL_IMAGE_SHARES) == 0 &&
            fchmod(fd, 0600) < 0) {
                r = -errno;
                goto failed;
        }
        pool_change_begin(config->state_dir, pool_fd, &change);
        if ((r = pool_sums_watch(config->state_dir, pool_fd, id, promised, error)) < 0)
                goto told;
        if (renameat(pool_fd, name, pool_fd, id) < 0) {
                r = -errno;
                goto failed;
        }
        pool_change_renew(&change);
        fd_close(&old_fd);
        if (promised == 0 && !shares)
                keep_whole(fd, id, st.st_size);
        pool_change_end(&change, st.st_size - before.st_size, 0);
        return fsync(pool_fd) < 0 ? fail(error, errno, "fsync", pool->path) : 0;

failed:
        r = fail_fill(r, "restore image", id, error);
told:
        (void)unlinkat(pool_fd, name, 0); /* the first failure is the one to report */
        return r;
}
