/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool_directory.c - directories, one per volume, on a filesystem of the node.
 *
 * Where the filesystem keeps to quotas of projects, a volume is a project of its own, and its size the project's limit.
 * The kernel alone knows which project that is: the directory has it before the limit is set, and the limit is taken
 * away after the last file of the project, so that a killed call leaves a directory by which the next one finds both.
 */
#include "pool/pool_directory.h"

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
#include "base/project_quota.h"
#include "base/syscalls.h"
#include "base/text.h"
#include "pool/pool.h"
#include "state/volume_record.h"

#define MODE_DEFAULT "0755"

static bool is_quota(const json_t *value)
{
        static const char *const words[] = { "auto", "required", NULL };

        return json_is_string(value) && text_among(json_string_value(value), words);
}

static const struct file_key keys[] = {
        { "path", "an absolute path", file_key_is_path, true, NULL, "Directory of the volumes.", NULL },
        { "quota", "\"auto\" or \"required\"", is_quota, false, "auto",
          "Whether volumes are refused where the filesystem does not keep to quotas of projects, or only marked.",
          NULL },
        {},
};

static const char *read_keys(const json_t *file, struct pool *pool)
{
        const char *quota = file_key_text(keys, file, "quota");

        (void)text_path_normal(json_string_value(json_object_get(file, "path")), pool->path); /* it is one */
        pool->needs_quota = strcmp(quota, "required") == 0;
        return NULL;
}

static bool is_mode(const json_t *value)
{
        const char *text = json_string_value(value);
        size_t length = text != NULL ? strlen(text) : 0;

        return length >= 3 && length <= 4 && strspn(text, "01234567") == length;
}

static bool is_id(const json_t *value)
{
        const char *text = json_string_value(value);
        size_t length = text != NULL ? strlen(text) : 0;

        return length >= 1 && length <= 10 && strspn(text, "0123456789") == length &&
               strtoull(text, NULL, 10) < UINT32_MAX;
}

static const struct file_key parameters_of_volumes[] = {
        { "mode", "octal, as \"0770\"", is_mode, false, MODE_DEFAULT, "Mode of the volume's root directory.", NULL },
        { "uid", "a number, as \"1000\"", is_id, false, "0", "Owner of the volume's root directory.", NULL },
        { "gid", "a number, as \"1000\"", is_id, false, "0", "Group of the volume's root directory.", NULL },
        {},
};

/* ---- the pool */

/* What containers make in volumes, set-user-ID programs too, other users of the node must not reach. */
static int open_pool(const struct config *config, const struct pool *pool, bool use, struct error *error)
{
        cleanup_close int fd = use ? pool_use(config, pool, error) : pool_open(config, pool, error);
        struct stat st;

        if (fd < 0)
                return fd;
        if (fstat(fd, &st) < 0)
                return fail(error, errno, "fstat", pool->path);
        if ((st.st_mode & (S_IRWXG | S_IRWXO)) != 0)
                return fail_because(error, EPERM, OPERATION_OPEN_POOL, pool->path,
                                    "other users of the node can look into %s, where volumes are; chmod it to 0700",
                                    pool->path);
        return fd_take(&fd);
}

static int see_pool(const struct config *config, const struct pool *pool, struct stat *ret_st, struct error *error)
{
        cleanup_close int pool_fd = open_pool(config, pool, /* use= */ false, error);

        if (pool_fd < 0)
                return pool_fd;
        return fstat(pool_fd, ret_st) < 0 ? fail(error, errno, "fstat", pool->path) : 0;
}

/* Project ids are the filesystem's: pools on one filesystem have one lock. */
static int locate(const struct config *config, const struct pool *pool, char *ret_location, struct error *error)
{
        struct stat st;
        int r = see_pool(config, pool, &st, error);

        if (r == 0)
                (void)snprintf(ret_location, POOL_LOCATION_SIZE, "directory:%llx", (unsigned long long)st.st_dev);
        return r;
}

static int locate_disks(const struct config *config, const struct pool *pool, char *ret_location, struct error *error)
{
        struct stat st;
        int r = see_pool(config, pool, &st, error);

        if (r == 0)
                (void)snprintf(ret_location, POOL_LOCATION_SIZE, "directory:%llx:%llu", (unsigned long long)st.st_dev,
                               (unsigned long long)st.st_ino);
        return r;
}

/* What the filesystem has: a volume's size is a limit, and takes no room before it is used. */
static int measure(const struct config *config, const struct pool *pool, const json_t *parameters,
                   struct pool_measure *ret_measure, struct error *error)
{
        cleanup_close int pool_fd = open_pool(config, pool, /* use= */ false, error);
        struct statfs fs;
        uint64_t budget;
        uint64_t used;
        uint64_t block;

        (void)parameters;
        if (pool_fd < 0)
                return pool_fd;
        if (fstatfs(pool_fd, &fs) < 0)
                return fail(error, errno, "fstatfs", pool->path);
        block = (uint64_t)fs.f_bsize;
        budget = pool_share(pool, (uint64_t)fs.f_blocks * block);
        used = (uint64_t)(fs.f_blocks - fs.f_bfree) * block;
        ret_measure->total_bytes = budget / block * block;
        ret_measure->available_bytes = (uint64_t)fs.f_bavail * block;
        if (pool->max_percent < 100 && (budget < used || budget - used < ret_measure->available_bytes))
                ret_measure->available_bytes = budget > used ? (budget - used) / block * block : 0;
        ret_measure->largest_bytes = ret_measure->available_bytes;
        ret_measure->alignment_bytes = block;
        ret_measure->inodes = (uint64_t)fs.f_files;
        ret_measure->inodes_free = (uint64_t)fs.f_ffree;
        if (pool->needs_quota && !project_quota_is_on(pool_fd)) {
                ret_measure->problem = "its filesystem keeps to no quotas of projects, and the pool requires them";
                ret_measure->problem_errnum = EOPNOTSUPP;
        }
        return 0;
}

static void choose_id(const struct pool *pool, const char *name, char *ret_id)
{
        char stem[VOLUME_RECORD_STEM_SIZE];

        (void)pool;
        volume_record_stem(name, stem);
        (void)snprintf(ret_id, PROVISION_ID_MAX, "%s", stem);
}

/* ---- one volume */

/* Not what mkfs made, nor flexgraft's own. No volume's name becomes "lost+found". */
static bool is_volume(const char *id)
{
        return id[0] != '.' && strchr(id, '/') == NULL && strcmp(id, "lost+found") != 0;
}

static int open_volume(int pool_fd, const struct pool *pool, const char *id, int flags, struct error *error)
{
        int fd;

        if (!is_volume(id))
                return fail_because(error, EINVAL, "open volume", id, "\"%.200s\" is not a volume's directory", id);
        fd = sys_openat2(pool_fd, id, flags | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0,
                         RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV);
        if (fd >= 0)
                return fd;
        if (errno == ENOENT)
                return -ENOENT;
        if (errno == ENOTDIR || errno == ELOOP)
                return fail_because(error, ENOTDIR, "open volume", id, "%s/%s is not a directory", pool->path, id);
        if (errno == EXDEV)
                return fail_because(error, EBUSY, "open volume", id, "something is mounted on %s/%s; unmount it first",
                                    pool->path, id);
        return fail(error, errno, "open volume", id);
}

/* Where the limit of a project holds, statfs(2) tells of the project and not of the filesystem: without privileges. */
static int describe(int pool_fd, const struct pool *pool, const char *id, struct pool_item *ret_item,
                    struct error *error)
{
        cleanup_close int fd = open_volume(pool_fd, pool, id, O_PATH, error);
        struct statfs whole;
        struct statfs own;

        if (fd < 0)
                return fd;
        if (fstatfs(fd, &own) < 0 || fstatfs(pool_fd, &whole) < 0)
                return fail(error, errno, "fstatfs", id);
        *ret_item = (struct pool_item){ .ours = true, .limited = own.f_blocks < whole.f_blocks };
        if (ret_item->limited) {
                ret_item->size_bytes = (uint64_t)own.f_blocks * (uint64_t)own.f_bsize;
                ret_item->used_bytes = (uint64_t)(own.f_blocks - own.f_bfree) * (uint64_t)own.f_bsize;
        }
        (void)text_copy(ret_item->id, sizeof ret_item->id, id);
        (void)snprintf(ret_item->path, sizeof ret_item->path, "%s/%s", pool->path, id);
        return 0;
}

static int look(const struct config *config, const struct pool *pool, const char *id, struct pool_item *ret_item,
                struct error *error)
{
        cleanup_close int pool_fd = open_pool(config, pool, /* use= */ false, error);

        return pool_fd < 0 ? pool_fd : describe(pool_fd, pool, id, ret_item, error);
}

static int each(const struct config *config, const struct pool *pool, pool_item_function *function, void *argument,
                struct error *error)
{
        cleanup_close int pool_fd = open_pool(config, pool, /* use= */ false, error);
        DIR *list = pool_fd < 0 ? NULL : file_list(pool_fd, ".");
        const struct dirent *entry;
        struct pool_item item;
        int r = 0;

        if (pool_fd < 0)
                return pool_fd;
        if (list == NULL)
                return fail(error, errno, OPERATION_OPEN_POOL, pool->path);
        while (r == 0 && (entry = readdir(list)) != NULL)
                if (is_volume(entry->d_name) && describe(pool_fd, pool, entry->d_name, &item, error) == 0)
                        r = function(&item, argument, error);
        (void)closedir(list); /* only read from */
        return r;
}

static const char *parameter(const struct provision_record *record, const char *key)
{
        const char *value = json_string_value(json_object_get(record->parameters, key));

        return value != NULL ? value : file_key_text(parameters_of_volumes, NULL, key);
}

static int create(const struct config *config, const struct pool *pool, const struct provision_record *record,
                  struct pool_item *ret_item, struct error *error)
{
        cleanup_close int pool_fd = open_pool(config, pool, /* use= */ true, error);
        const uid_t uid = (uid_t)strtoul(parameter(record, "uid"), NULL, 10);
        const gid_t gid = (gid_t)strtoul(parameter(record, "gid"), NULL, 10);
        cleanup_close int fd = -EBADF;
        char identity[PROVISION_IDENTITY_MAX];
        int r;

        if (pool_fd < 0)
                return pool_fd;
        if (mkdirat(pool_fd, record->id, 0700) < 0)
                return fail(error, errno, "make volume", record->id);
        fd = open_volume(pool_fd, pool, record->id, O_RDONLY, error);
        if (fd < 0)
                return fd == -ENOENT ? fail(error, ENOENT, "make volume", record->id) : fd;
        if ((r = pool_project_assign(fd, record, identity, error)) < 0)
                return r;
        /* the owner last: then it is not ours */
        if (fchmod(fd, (mode_t)strtoul(parameter(record, "mode"), NULL, 8)) < 0 ||
            ((uid != 0 || gid != 0) && fchownat(fd, "", uid, gid, AT_EMPTY_PATH) < 0))
                return fail(error, errno, "set owner and mode", record->id);
        if (fsync(fd) < 0 || fsync(pool_fd) < 0)
                return fail(error, errno, "fsync", record->id);
        if ((r = describe(pool_fd, pool, record->id, ret_item, error)) < 0)
                return r == -ENOENT ? fail(error, ENOENT, "make volume", record->id) : r;
        (void)text_copy(ret_item->identity, sizeof ret_item->identity, identity);
        return 0;
}

static int is_blank(const struct config *config, const struct pool *pool, const char *id, struct error *error)
{
        cleanup_close int pool_fd = open_pool(config, pool, /* use= */ false, error);
        cleanup_close int fd = pool_fd < 0 ? pool_fd : open_volume(pool_fd, pool, id, O_RDONLY, error);
        int r;

        if (fd < 0)
                return fd;
        r = file_directory_is_empty(fd);
        return r < 0 ? fail(error, -r, "open volume", id) : r;
}

static int wipe(const struct config *config, const struct pool *pool, const char *id, struct error *error)
{
        cleanup_close int pool_fd = open_pool(config, pool, /* use= */ false, error);
        cleanup_close int fd = pool_fd < 0 ? pool_fd : open_volume(pool_fd, pool, id, O_RDONLY, error);
        int r = fd < 0 ? fd : pool_trash_wipe(fd, id, error);

        if (r < 0)
                return r;
        return fsync(fd) < 0 ? fail(error, errno, "fsync", id) : 0;
}

/* Its directory is gone at once, with its name; its files take longer, and others may use the pool meanwhile. */
static int discard(const struct config *config, const struct pool *pool, const char *id, struct error *error)
{
        cleanup_close int pool_fd = open_pool(config, pool, /* use= */ false, error);

        return pool_fd < 0 ? pool_fd : pool_trash_discard(pool_fd, pool_fd, id, id, error);
}

static int erase(const struct config *config, const struct pool *pool, const char *id, bool begun, struct error *error)
{
        (void)begun;
        return discard(config, pool, id, error);
}

static int tidy(const struct config *config, const struct pool *pool, struct error *error)
{
        cleanup_close int pool_fd = open_pool(config, pool, /* use= */ false, error);

        return pool_fd < 0 ? pool_fd : pool_trash_empty(pool_fd, error);
}

/* ---- for the driver and volume-expand */

int pool_directory_open(const struct config *config, const struct provision_record *record, char *ret_path,
                        struct error *error)
{
        struct pool pool;
        cleanup_close int pool_fd = -EBADF;
        int r = pool_find(config, record->pool, &pool, error);

        if (r < 0)
                return r;
        if (pool.kind != &pool_directory)
                return fail_because(error, EINVAL, "open volume", record->name,
                                    "its pool \"%.128s\" is no longer of type directory", record->pool);
        pool_fd = open_pool(config, &pool, /* use= */ false, error);
        if (pool_fd < 0)
                return pool_fd;
        (void)snprintf(ret_path, PATH_MAX, "%s/%s", pool.path, record->id);
        r = open_volume(pool_fd, &pool, record->id, O_PATH, error);
        return r == -ENOENT ? fail_because(error, ENOENT, "open volume", ret_path,
                                           "the volume is lost: %s is not there", ret_path)
                            : r;
}

int pool_directory_grow(const struct config *config, const struct provision_record *record, uint64_t size_bytes,
                        uint64_t *ret_size_bytes, struct error *error)
{
        char path[PATH_MAX];
        cleanup_close int path_fd = pool_directory_open(config, record, path, error);
        cleanup_close int fd = -EBADF;
        struct statfs fs;
        uint64_t block;
        int r;

        if (path_fd < 0)
                return path_fd;
        fd = openat(path_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0 || fstatfs(fd, &fs) < 0)
                return fail(error, errno, "open volume", path);
        block = (uint64_t)fs.f_bsize;
        size_bytes = (size_bytes + block - 1) / block * block;
        if (size_bytes < record->size_bytes)
                size_bytes = record->size_bytes;
        if ((r = pool_project_grow(fd, record, size_bytes, error)) < 0)
                return r;
        *ret_size_bytes = size_bytes;
        return 0;
}

static const struct hint hints[] = {
        { OPERATION_FIND_ROOM, EOPNOTSUPP,
          "mount the filesystem with the option prjquota (ext4 also needs tune2fs -O project,quota), or leave out "
          "\"quota\"" },
        { OPERATION_REMOVE, EAGAIN, "end what still uses the volume, and run volume-delete again" },
        {},
};

const struct pool_kind pool_directory = { .type = "directory",
                                          .hints = hints,
                                          .keys = keys,
                                          .parameters = parameters_of_volumes,
                                          .no_device = true,
                                          .read = read_keys,
                                          .locate = locate,
                                          .locate_disks = locate_disks,
                                          .measure = measure,
                                          .choose_id = choose_id,
                                          .create = create,
                                          .look = look,
                                          .is_blank = is_blank,
                                          .wipe = wipe,
                                          .erase = erase,
                                          .remove = discard,
                                          .each = each,
                                          .tidy = tidy };
