/* SPDX-License-Identifier: Apache-2.0 */
#include "pool/pool_nfs_share.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/syscalls.h"
#include "base/text.h"
#include "mount/detached.h"
#include "mount/nfs.h"
#include "pool/pool.h"
#include "process/worker.h"

#define CLOSE_MS 2000

static bool allowed;

void pool_nfs_allow(void)
{
        allowed = true;
}

/* The last share that was mounted: a call has one pool, most often, and steps that each need it. */
static struct {
        char pool[POOL_NAME_MAX];
        int fd;
} last = { .fd = -EBADF };

void pool_nfs_close_here(void)
{
        int fd = fd_take(&last.fd); /* first: where close() hangs, its number is another file's already */

        if (fd >= 0)
                (void)close(fd); /* only read from */
}

static int close_last(void *argument, struct error *error)
{
        (void)argument;
        (void)error;
        pool_nfs_close_here();
        return 0;
}

void pool_nfs_close_share(void)
{
        struct error ignored; /* what hangs in the kernel is left to it */

        if (last.fd >= 0)
                (void)worker_run(close_last, NULL, clock_now_ms() + CLOSE_MS, &ignored);
}

/* The name server knows no such server, or it no such share: callers take ENOENT for a missing volume. */
static int fail_missing(const struct pool *pool, struct error *error)
{
        char why[sizeof error->reason];

        (void)text_copy(why, sizeof why, error_why(error));
        return fail_because(error, ENODEV, "mount share", pool->nfs.server, "%s", why);
}

static int mount_share(const struct config *config, const struct pool *pool, const struct mount_options *options,
                       struct error *error)
{
        static struct nfs_export export;
        int64_t time_ms = (int64_t)config->call_seconds * 1000;
        struct nfs_mount mount = { .export = &export,
                                   .options = options,
                                   .read_only = options->read_only,
                                   .deadline_ms = clock_now_ms() + time_ms / 2 };
        int r;

        if (!allowed)
                return fail_because(
                        error, EOPNOTSUPP, "mount share", pool->name,
                        "volumes of a pool of type nfs are made by volume-create and deleted by volume-delete");
        if (nfs_export_join(pool->nfs.server, pool->nfs.share, &export) < 0)
                return fail_because(error, EINVAL, "mount share", pool->name,
                                    "\"server\" must be a host name or address, and \"share\" a path on it");
        r = nfs_mount_on_node(&mount, error);
        return r == -ENOENT ? fail_missing(pool, error) : r;
}

static int add_list(struct mount_options *options, const char *list, struct error *error)
{
        return list[0] == '\0' ? 0 : mount_options_add_list(options, list, error);
}

/* For what the volume tools do on it: a pool that containers may only read is one that these write to. */
static int mount_for_tools(const struct config *config, const struct pool *pool, struct error *error)
{
        struct mount_options options = {};
        int r = add_list(&options, pool->nfs.options, error);

        options.read_only = false;
        if (r == 0)
                r = mount_share(config, pool, &options, error);
        mount_options_release(&options);
        return r;
}

int pool_nfs_open_share(const struct config *config, const struct pool *pool, struct error *error)
{
        if (last.fd < 0 || strcmp(last.pool, pool->name) != 0) {
                pool_nfs_close_here();
                last.fd = mount_for_tools(config, pool, error);
                (void)text_copy(last.pool, sizeof last.pool, pool->name);
        }
        if (last.fd < 0)
                return last.fd;
        int fd = openat(last.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        return fd >= 0 ? fd : fail(error, errno, "open share", pool->nfs.share);
}

int pool_nfs_open_below(int share_fd, const char *path, struct error *error)
{
        int fd = path[0] == '\0' ? openat(share_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
                                 : sys_openat2(share_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0,
                                               RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);

        return fd >= 0 ? fd : errno == ENOENT ? -ENOENT : fail(error, errno, "open directory", path);
}

int pool_nfs_open_parent(int share_fd, const char *path, bool make, const char **ret_name, struct error *error)
{
        const char *slash = strrchr(path, '/');
        char part[PROVISION_ID_MAX];

        *ret_name = slash != NULL ? slash + 1 : path;
        for (const char *end = path; make && (end = strchr(end, '/')) != NULL; end++) {
                const char *name;
                cleanup_close int fd = -EBADF;

                (void)snprintf(part, sizeof part, "%.*s", (int)(end - path), path);
                fd = pool_nfs_open_parent(share_fd, part, /* make= */ false, &name, error);
                if (fd < 0)
                        return fd;
                if (mkdirat(fd, name, 0755) < 0 && errno != EEXIST)
                        return fail(error, errno, "mkdir", part);
        }
        (void)snprintf(part, sizeof part, "%.*s", slash != NULL ? (int)(slash - path) : 0, path);
        return pool_nfs_open_below(share_fd, part, error);
}

void pool_nfs_put_identity(int fd, const char *name, char *ret_identity)
{
        union {
                struct file_handle handle;
                char bytes[sizeof(struct file_handle) + MAX_HANDLE_SZ];
        } space = { .handle = { .handle_bytes = MAX_HANDLE_SZ } };
        int ignored; /* the mount's number */

        ret_identity[0] = '\0';
        if (name_to_handle_at(fd, name, &space.handle, &ignored, AT_EMPTY_PATH) == 0)
                (void)snprintf(ret_identity, PROVISION_IDENTITY_MAX, "handle %016llx",
                               (unsigned long long)hash_bytes(HASH_SEED, (const char *)space.handle.f_handle,
                                                              space.handle.handle_bytes));
}

/* O_PATH: the server may let nobody list it whom it takes this node's root for. */
static int open_volume(int mount_fd, const struct provision_record *record, struct error *error)
{
        char identity[PROVISION_IDENTITY_MAX] = "";
        cleanup_close int fd = sys_openat2(mount_fd, record->id, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0,
                                           RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);

        if (fd < 0 && errno == ENOENT)
                return fail_because(error, ENODEV, "open directory", record->id,
                                    "the share has no such directory; the volume is lost");
        if (fd < 0)
                return fail(error, errno, "open directory", record->id);
        pool_nfs_put_identity(fd, "", identity);
        if (record->identity[0] == '\0' || identity[0] == '\0' || strcmp(record->identity, identity) == 0)
                return fd_take(&fd);
        return fail_because(error, ESTALE, "open directory", record->id,
                            "another directory than the volume's has its name on the share");
}

/*
 * What the pool and the volume say. With a superblock of its own: what waits for a dead server is given up when a mount
 * ends (mount/dead_server.h), and must not be that of others.
 */
static int add_options(struct mount_options *options, const struct pool *pool, const struct provision_record *record,
                       struct error *error)
{
        const json_t *flag;
        size_t i;
        int r = mount_options_add(options, "nosharecache", error);

        if (r == 0)
                r = add_list(options, pool->nfs.options, error);
        json_array_foreach (record->mount_flags, i, flag)
                if (r == 0)
                        r = add_list(options, json_string_value(flag), error);
        return r;
}

int pool_nfs_mount_volume(const struct config *config, const struct provision_record *record, uint64_t *ret_attributes,
                          struct error *error)
{
        static struct pool pool;
        struct mount_options options = {};
        cleanup_close int mount_fd = -EBADF;
        cleanup_close int fd = -EBADF;
        int r = pool_find(config, record->pool, &pool, error);

        *ret_attributes = 0;
        if (r < 0)
                return r;
        if (pool.kind != &pool_nfs)
                return fail_because(error, ENODEV, "find volume", record->name,
                                    "pool \"%.128s\" has become one of another type", record->pool);
        if ((r = add_options(&options, &pool, record, error)) == 0)
                r = mount_fd = mount_share(config, &pool, &options, error);
        *ret_attributes = options.attr_set | (options.read_only ? MOUNT_ATTR_RDONLY : 0);
        mount_options_release(&options);
        if (r < 0)
                return r;
        fd = open_volume(mount_fd, record, error);
        return fd < 0 ? fd : detached_mount_clone_below(mount_fd, fd, record->name, error);
}
