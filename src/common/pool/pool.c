/* SPDX-License-Identifier: Apache-2.0 */
#include "pool/pool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/sort.h"
#include "base/text.h"
#include "pool/pool_identity.h"
#include "pool/pool_implied.h"
#include "process/worker.h"
#include "state/state_dir.h"

#define DEFAULT_DIRECTORY "/etc/flexgraft/pools.d"
#define DEFAULT_POOLS "pools"
#define SUFFIX ".json"
#define POOLS_MAX 256
#define ANSWER_MS 5000

/* Where there is none of this mode, the first of the type, whose key "mode" says so; NULL: there is no such type. */
static const struct pool_kind *find_kind(const char *type, const char *mode)
{
        const struct pool_kind *first = NULL;

        for (size_t i = 0; pool_kinds[i] != NULL; i++) {
                const struct pool_kind *kind = pool_kinds[i];

                if (strcmp(kind->type, type) != 0)
                        continue;
                if (kind->mode == NULL || mode == NULL || strcmp(kind->mode, mode) == 0)
                        return kind;
                first = first != NULL ? first : kind;
        }
        return first;
}

static bool is_type(const json_t *value)
{
        return json_is_string(value) && find_kind(json_string_value(value), /* mode= */ NULL) != NULL;
}

static bool is_percent(const json_t *value)
{
        return json_is_integer(value) && json_integer_value(value) >= 1 && json_integer_value(value) <= 100;
}

const struct file_key pool_keys[] = {
        { "name", "the file's name without \".json\"", file_key_is_text, false, NULL, "Name of the pool.", NULL },
        { "type", POOL_TYPE_LIST_QUOTED, is_type, true, NULL, "What the pool is made of.", NULL },
        { "maxPercent", "a number from 1 to 100", is_percent, false, "100",
          "Largest share of the filesystem, volume group or region that the pool may use.", NULL },
        {},
};

static int check_owner(const char *path, const struct stat *st, struct error *error)
{
        if (st->st_uid == geteuid() && (st->st_mode & (S_IWGRP | S_IWOTH)) == 0)
                return 0;
        return fail_because(error, EPERM, OPERATION_OPEN_POOL, path,
                            "%s belongs to another user, or others may write to it", path);
}

static int fail_file(const char *file, const char *complaint, struct error *error)
{
        return fail_because(error, EBADMSG, "read pool", file, "%s: %s", file, complaint);
}

/* Keys of other kinds are ignored: a file may keep those of its former type. */
static bool is_known(const char *name)
{
        bool known = file_key_find(pool_keys, name) != NULL;

        for (size_t i = 0; !known && pool_kinds[i] != NULL; i++)
                known = file_key_find(pool_kinds[i]->keys, name) != NULL;
        return known;
}

static int take_file(const char *file, const json_t *object, struct pool *pool, struct error *error)
{
        const char *name = json_string_value(json_object_get(object, "name"));
        char complaint[FILE_KEY_COMPLAINT_SIZE] = "";
        const struct pool_kind *kind;
        const char *wrong;
        const char *key;
        const json_t *value;

        json_object_foreach ((json_t *)object, key, value)
                if (!is_known(key))
                        return fail_because(error, EBADMSG, "read pool", file, "%s: unknown key \"%.64s\"", file, key);
        if (!file_keys_check(pool_keys, object, /* strict= */ false, complaint))
                return fail_file(file, complaint, error);
        if (name != NULL && strcmp(name, pool->name) != 0)
                return fail_file(file, "\"name\" must be the file's name without \".json\"", error);
        kind = find_kind(json_string_value(json_object_get(object, "type")),
                         json_string_value(json_object_get(object, "mode")));
        if (kind == NULL || !file_keys_check(kind->keys, object, /* strict= */ false, complaint))
                return fail_file(file, complaint, error);
        wrong = kind->read(object, pool);
        if (wrong != NULL)
                return fail_file(file, wrong, error);
        pool->max_percent = (unsigned)file_key_number(pool_keys, object, "maxPercent");
        pool->kind = kind;
        return 0;
}

static const char *directory_of_files(void)
{
        return secure_getenv("FLEXGRAFT_POOLS") ?: DEFAULT_DIRECTORY;
}

static int read_file(struct pool *pool, struct error *error)
{
        cleanup_json json_t *object = NULL;
        char file[PATH_MAX];
        struct stat st;
        int r;

        if (snprintf(file, sizeof file, "%s/%s" SUFFIX, directory_of_files(), pool->name) >= (int)sizeof file)
                return fail(error, ENAMETOOLONG, "read pool", pool->name);
        if ((r = json_file_load(AT_FDCWD, file, JSON_OBJECT, &object, error)) < 0)
                return r;
        if (stat(file, &st) < 0)
                return fail(error, errno, "stat", file);
        if ((r = check_owner(file, &st, error)) < 0)
                return r;
        return take_file(file, object, pool, error);
}

static int read_implied(const struct config *config, struct pool *pool, struct error *error)
{
        cleanup_json json_t *object = NULL;
        int r = pool_implied_is_name(pool->name) ? pool_implied_load(config, pool->name, &object, error) : -ENOENT;

        return r < 0 ? r : take_file(pool->name, object, pool, error);
}

int pool_find(const struct config *config, const char *name, struct pool *ret_pool, struct error *error)
{
        int r;

        *ret_pool = (struct pool){};
        if (name[0] == '.' || strchr(name, '/') != NULL || !text_copy(ret_pool->name, sizeof ret_pool->name, name))
                return fail_because(error, EINVAL, OPERATION_OPEN_POOL, name, "\"%.200s\" is not a pool's name", name);
        r = read_file(ret_pool, error);
        if (r == -ENOENT)
                r = read_implied(config, ret_pool, error);
        if (r == 0 && ret_pool->kind->recall != NULL)
                r = ret_pool->kind->recall(config, ret_pool, error);
        if (r != -ENOENT)
                return r;
        if (strcmp(name, POOL_DEFAULT) != 0)
                return fail_because(error, ENOENT, OPERATION_OPEN_POOL, name, "there is no pool \"%.200s\"", name);
        ret_pool->kind = &pool_loop;
        ret_pool->max_percent = 100;
        if (snprintf(ret_pool->path, sizeof ret_pool->path, "%s/" DEFAULT_POOLS "/" POOL_DEFAULT, config->state_dir) >=
            (int)sizeof ret_pool->path)
                return fail(error, ENAMETOOLONG, OPERATION_OPEN_POOL, config->state_dir);
        return 0;
}

static bool is_default(const struct config *config, const struct pool *pool)
{
        char path[PATH_MAX];

        (void)snprintf(path, sizeof path, "%s/" DEFAULT_POOLS "/" POOL_DEFAULT, config->state_dir);
        return strcmp(pool->path, path) == 0;
}

void pool_put_location(const struct config *config, const struct pool *pool, char *ret_location)
{
        int (*locate)(const struct config *config, const struct pool *pool, char *ret_location, struct error *error) =
                pool->kind->locate_disks ?: pool->kind->locate;
        char said[sizeof pool->path + sizeof pool->nfs];
        char located[POOL_LOCATION_SIZE];
        char share[PATH_MAX];
        struct error ignored;

        if (is_default(config, pool))
                (void)text_copy(said, sizeof said, DEFAULT_POOLS "/" POOL_DEFAULT); /* it goes with the records */
        else if (pool->path[0] != '\0')
                (void)text_copy(said, sizeof said, pool->path);
        else if (pool->nfs.server[0] != '\0' && text_path_normal(pool->nfs.share, share) == 0)
                (void)snprintf(said, sizeof said, "nfs:%s:%s", pool->nfs.server, share);
        else if (locate(config, pool, located, &ignored) == 0)
                (void)text_copy(said, sizeof said, located);
        else
                said[0] = '\0';
        if (!text_copy(ret_location, PROVISION_LOCATION_MAX, said))
                (void)snprintf(ret_location, PROVISION_LOCATION_MAX, "hash:%016llx",
                               (unsigned long long)hash_text(said));
}

uint64_t pool_share(const struct pool *pool, uint64_t bytes)
{
        return bytes / 100 * pool->max_percent + bytes % 100 * pool->max_percent / 100;
}

struct names {
        char (*list)[POOL_NAME_MAX];
        size_t count;
};

static int add_name(struct names *names, const char *name, size_t length, struct error *error)
{
        if (length >= POOL_NAME_MAX) /* by which no pool can be asked for */
                return 0;
        if (names->count == POOLS_MAX)
                return fail_because(error, E2BIG, "read pools", name, "there are more than %d pools", POOLS_MAX);
        (void)snprintf(names->list[names->count++], POOL_NAME_MAX, "%.*s", (int)length, name);
        return 0;
}

static int compare(const void *one, const void *other, const void *context)
{
        (void)context;
        return strcmp(one, other);
}

/* Sorted. */
static int list_names(struct names *names, struct error *error)
{
        DIR *list = opendir(directory_of_files());
        const struct dirent *entry;
        bool has_default = false;
        int r = 0;

        if (list == NULL && errno != ENOENT)
                return fail(error, errno, "read pools", directory_of_files());
        while (list != NULL && r == 0 && (entry = readdir(list)) != NULL)
                if (entry->d_name[0] != '.' && text_ends(entry->d_name, SUFFIX)) {
                        has_default = has_default || strcmp(entry->d_name, POOL_DEFAULT SUFFIX) == 0;
                        r = add_name(names, entry->d_name, strlen(entry->d_name) - strlen(SUFFIX), error);
                }
        if (list != NULL)
                (void)closedir(list); /* only read from */
        if (r == 0 && !has_default)
                r = add_name(names, POOL_DEFAULT, strlen(POOL_DEFAULT), error);
        sort_few(names->list, names->count, sizeof names->list[0], compare, NULL);
        return r;
}

int pool_each(const struct config *config, pool_function *function, void *argument, struct error *error)
{
        static char list[POOLS_MAX][POOL_NAME_MAX];
        struct names names = { .list = list };
        int r = list_names(&names, error);

        for (size_t i = 0; r == 0 && i < names.count; i++) {
                struct pool pool;

                if (pool_find(config, list[i], &pool, error) < 0)
                        pool.kind = NULL;
                r = function(&pool, argument, error);
        }
        return r;
}

int pool_each_implied(const struct config *config, pool_function *function, void *argument, struct error *error)
{
        cleanup_state struct state shares = STATE_NONE;
        const struct dirent *entry;
        DIR *list;
        int r = state_open(config->state_dir, POOL_IMPLIED_DIRECTORY, /* create= */ false, &shares, error);

        if (r < 0)
                return r == -ENOENT ? 0 : r;
        list = state_list(&shares);
        if (list == NULL)
                return fail(error, errno, "read pools", POOL_IMPLIED_DIRECTORY);
        while (r == 0 && (entry = readdir(list)) != NULL) {
                char name[POOL_NAME_MAX];
                struct pool pool;

                if (!text_ends(entry->d_name, SUFFIX) || !text_copy(name, sizeof name, entry->d_name))
                        continue;
                name[strlen(name) - strlen(SUFFIX)] = '\0';
                if (!pool_implied_is_name(name))
                        continue;
                if (pool_find(config, name, &pool, error) < 0)
                        pool.kind = NULL;
                r = function(&pool, argument, error);
        }
        (void)closedir(list); /* only read from */
        return r;
}

/* Beside the records, and made like them. */
static int make_default(const struct config *config, struct error *error)
{
        cleanup_state struct state pools = STATE_NONE;
        int r = state_open(config->state_dir, DEFAULT_POOLS, /* create= */ true, &pools, error);

        if (r < 0)
                return r;
        if (mkdirat(pools.dir_fd, POOL_DEFAULT, 0700) < 0 && errno != EEXIST)
                return fail(error, errno, "mkdir", POOL_DEFAULT);
        return 0;
}

/* The last pool that was opened: most calls have one, and open it for each of their steps. */
static struct {
        char path[PATH_MAX];
        int fd;
        bool used; /* by pool_use() */
} last = { .fd = -EBADF };

static void keep(const struct pool *pool, int fd, bool use)
{
        fd_close(&last.fd);
        last.fd = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* if that fails, none is kept */
        last.used = use;
        (void)text_copy(last.path, sizeof last.path, pool->path); /* as long */
}

static int open_kept(const struct pool *pool, bool use)
{
        if (last.fd < 0 || (use && !last.used) || strcmp(last.path, pool->path) != 0)
                return -EBADF;
        return openat(last.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int open_directory(const struct config *config, const struct pool *pool, bool use, struct error *error)
{
        cleanup_close int fd = -EBADF;
        struct stat st;
        int r;

        if (pool->path[0] == '\0')
                return fail_because(error, EINVAL, OPERATION_OPEN_POOL, pool->name,
                                    "pool \"%s\" is of type %s and has no directory", pool->name, pool->kind->type);
        fd = open_kept(pool, use);
        if (fd >= 0)
                return fd_take(&fd);
        if (!pool->only_read && is_default(config, pool) && (r = make_default(config, error)) < 0)
                return r;
        fd = open(pool->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0 && errno == ENOENT)
                return fail_because(error, ENODEV, OPERATION_OPEN_POOL, pool->path,
                                    "the pool \"%s\" is missing: there is no directory %s", pool->name, pool->path);
        if (fd < 0)
                return fail(error, errno, OPERATION_OPEN_POOL, pool->path);
        if (fstat(fd, &st) < 0)
                return fail(error, errno, "fstat", pool->path);
        if ((r = check_owner(pool->path, &st, error)) < 0 ||
            (r = pool_identity_check(config, pool, fd, use, error)) < 0)
                return r;
        keep(pool, fd, use);
        return fd_take(&fd);
}

int pool_open(const struct config *config, const struct pool *pool, struct error *error)
{
        return open_directory(config, pool, /* use= */ false, error);
}

int pool_use(const struct config *config, const struct pool *pool, struct error *error)
{
        return open_directory(config, pool, /* use= */ true, error);
}

struct asking {
        const struct config *config;
        const struct pool *pool;
        int fd; /* here, because a worker that hangs leaves it open */
};

static int ask(void *argument, struct error *error)
{
        struct asking *asking = argument;
        struct statfs ignored;

        asking->fd = pool_open(asking->config, asking->pool, error);
        if (asking->fd >= 0)
                (void)fstatfs(asking->fd, &ignored); /* that it answers is enough */
        return 0;
}

int pool_check_answers(const struct config *config, const struct pool *pool, struct error *error)
{
        static char silent[POOL_NAME_MAX]; /* kept: the last one that did not */
        struct asking asking = { .config = config, .pool = pool, .fd = -EBADF };
        int r = 0;

        if (pool->path[0] == '\0')
                return 0;
        if (strcmp(silent, pool->name) != 0)
                r = worker_run(ask, &asking, clock_now_ms() + ANSWER_MS, error);
        fd_close(&asking.fd);
        if (r == -ETIMEDOUT)
                (void)text_copy(silent, sizeof silent, pool->name);
        if (r == -ETIMEDOUT || strcmp(silent, pool->name) == 0)
                return fail_because(error, ETIMEDOUT, OPERATION_OPEN_POOL, pool->path,
                                    "the filesystem of pool \"%s\" does not answer", pool->name);
        return r;
}
