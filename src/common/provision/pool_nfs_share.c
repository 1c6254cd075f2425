/* SPDX-License-Identifier: Apache-2.0 */
#include "provision/pool_nfs_share.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/syscalls.h"
#include "base/text.h"
#include "mount/detached.h"
#include "mount/nfs.h"
#include "provision/pool.h"

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

/* The name server knows no such server, or it no such share: callers take ENOENT for a missing volume. */
static int fail_missing(const struct pool *pool, struct error *error)
{
        char why[sizeof error->reason];

        (void)text_copy(why, sizeof why, error_why(error));
        return fail_because(error, ENODEV, "mount share", pool->nfs.server, "%s", why);
}

/* flags: mount flags of a volume, or NULL. Gives: ret_reads_only, what they and the pool's options say. */
static int mount_share(const struct config *config, const struct pool *pool, const json_t *flags, bool *ret_reads_only,
                       struct error *error)
{
        static struct nfs_export export; /* static, for its size */
        int64_t time_ms = (int64_t)config->call_seconds * 1000;
        struct mount_options options = {};
        struct nfs_mount mount = { .export = &export,
                                   .options = &options,
                                   .deadline_ms = clock_now_ms() + time_ms / 2 };
        const json_t *flag;
        size_t i;
        int r;

        if (!allowed)
                return fail_because(
                        error, EOPNOTSUPP, "mount share", pool->name,
                        "volumes of a pool of type nfs are made by volume-create and deleted by volume-delete");
        if (nfs_export_join(pool->nfs.server, pool->nfs.share, &export) < 0)
                return fail_because(error, EINVAL, "mount share", pool->name,
                                    "\"server\" must be a host name or an address, and \"share\" a path");
        r = pool->nfs.options[0] == '\0' ? 0 : mount_options_add_list(&options, pool->nfs.options, error);
        json_array_foreach (flags, i, flag)
                if (r == 0)
                        r = mount_options_add_list(&options, json_string_value(flag), error);
        *ret_reads_only = options.read_only;
        if (r == 0)
                r = nfs_mount_on_node(&mount, error);
        mount_options_release(&options);
        return r == -ENOENT ? fail_missing(pool, error) : r;
}

int pool_nfs_open_share(const struct config *config, const struct pool *pool, struct error *error)
{
        bool ignored; /* what is written here is no volume's content */

        if (last.fd < 0 || strcmp(last.pool, pool->name) != 0) {
                fd_close(&last.fd);
                last.fd = mount_share(config, pool, /* flags= */ NULL, &ignored, error);
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

void pool_nfs_put_identity(int dir_fd, const char *name, char *ret_identity)
{
        union {
                struct file_handle handle;
                char bytes[sizeof(struct file_handle) + MAX_HANDLE_SZ];
        } space = { .handle = { .handle_bytes = MAX_HANDLE_SZ } };
        int ignored; /* the mount's number */

        ret_identity[0] = '\0';
        if (name_to_handle_at(dir_fd, name, &space.handle, &ignored, 0) == 0)
                (void)snprintf(ret_identity, PROVISION_IDENTITY_MAX, "handle %016llx",
                               (unsigned long long)hash_bytes(HASH_SEED, (const char *)space.handle.f_handle,
                                                              space.handle.handle_bytes));
}

static int open_volume(int share_fd, const struct provision_record *record, struct error *error)
{
        char identity[PROVISION_IDENTITY_MAX] = "";
        const char *name;
        cleanup_close int parent_fd = pool_nfs_open_parent(share_fd, record->id, /* make= */ false, &name, error);
        int fd = parent_fd < 0 ? parent_fd : pool_nfs_open_below(share_fd, record->id, error);

        if (fd == -ENOENT)
                return fail_because(error, ENODEV, "open directory", record->id,
                                    "the share has no such directory; the volume is lost");
        if (fd < 0)
                return fd;
        pool_nfs_put_identity(parent_fd, name, identity);
        if (record->identity[0] == '\0' || identity[0] == '\0' || strcmp(record->identity, identity) == 0)
                return fd;
        fd_close(&fd);
        return fail_because(error, ESTALE, "open directory", record->id,
                            "another directory than the volume's has its name on the share");
}

int pool_nfs_mount_volume(const struct config *config, const struct provision_record *record, bool *ret_reads_only,
                          struct error *error)
{
        static struct pool pool; /* static, for its size */
        cleanup_close int mount_fd = -EBADF;
        cleanup_close int share_fd = -EBADF;
        cleanup_close int fd = -EBADF;
        int r = pool_find(config, record->pool, &pool, error);

        if (r < 0)
                return r;
        if (pool.kind != &pool_nfs)
                return fail_because(error, ENODEV, "find volume", record->name,
                                    "pool \"%.128s\" has become one of another type", record->pool);
        /* one of its own: that of pool_nfs_open_share() is needed again */
        mount_fd = mount_share(config, &pool, record->mount_flags, ret_reads_only, error);
        if (mount_fd < 0)
                return mount_fd;
        share_fd = openat(mount_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (share_fd < 0)
                return fail(error, errno, "open share", pool.nfs.share);
        fd = open_volume(share_fd, record, error);
        return fd < 0 ? fd : detached_mount_clone_below(mount_fd, fd, record->name, error);
}
