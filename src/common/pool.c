/* SPDX-License-Identifier: Apache-2.0 */
#include "pool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fd.h"
#include "json_file.h"
#include "state.h"
#include "text.h"

#define DEFAULT_DIRECTORY "/etc/flexgraft/pools.d"
#define DEFAULT_POOL "default"
#define DEFAULT_POOLS "pools"

/* Every key that a pool's file may have; those that are not for images belong to the other types. */
static const char *const keys[] = { "name", "type", "path", "volumeGroup", "region", "maxPercent", NULL };

static int check_owner(const char *path, const struct stat *st, struct error *error)
{
        if (st->st_uid == geteuid() && (st->st_mode & (S_IWGRP | S_IWOTH)) == 0)
                return 0;
        return fail_because(error, EPERM, "open pool", path, "%s belongs to somebody else or others may write to it",
                            path);
}

static int check_file(const char *file, const char *name, const json_t *pool, char *ret_path, struct error *error)
{
        const char *given = json_string_value(json_object_get(pool, "name"));
        const char *type = json_string_value(json_object_get(pool, "type"));
        const char *path = json_string_value(json_object_get(pool, "path"));
        const char *key;
        const json_t *value;

        json_object_foreach ((json_t *)pool, key, value)
                if (!text_among(key, keys))
                        return fail_because(error, EBADMSG, "read pool", file, "%s: unknown key \"%.64s\"", file, key);
        if (given != NULL && strcmp(given, name) != 0)
                return fail_because(error, EBADMSG, "read pool", file, "%s: \"name\" is not the file's", file);
        if (type == NULL || strcmp(type, "loop") != 0)
                return fail_because(error, EBADMSG, "read pool", file, "%s: \"type\" is not \"loop\"", file);
        if (path == NULL || text_path_normal(path, ret_path) < 0)
                return fail_because(error, EBADMSG, "read pool", file, "%s: \"path\" is not an absolute path", file);
        return 0;
}

static int read_file(const char *name, char *ret_path, struct error *error)
{
        const char *directory = secure_getenv("FLEXGRAFT_POOLS");
        cleanup_json json_t *pool = NULL;
        char file[PATH_MAX];
        struct stat st;
        int r;

        if (snprintf(file, sizeof file, "%s/%s.json", directory != NULL ? directory : DEFAULT_DIRECTORY, name) >=
            (int)sizeof file)
                return fail(error, ENAMETOOLONG, "read pool", name);
        if ((r = json_file_load(AT_FDCWD, file, JSON_OBJECT, &pool, error)) < 0)
                return r;
        if (stat(file, &st) < 0)
                return fail(error, errno, "stat", file);
        if ((r = check_owner(file, &st, error)) < 0)
                return r;
        return check_file(file, name, pool, ret_path, error);
}

static int open_default(const struct config *config, char *ret_path, struct error *error)
{
        cleanup_state struct state pools = STATE_NONE;
        int fd;
        int r;

        if (snprintf(ret_path, PATH_MAX, "%s/" DEFAULT_POOLS "/" DEFAULT_POOL, config->state_dir) >= PATH_MAX)
                return fail(error, ENAMETOOLONG, "open pool", config->state_dir);
        if ((r = state_open(config->state_dir, DEFAULT_POOLS, /* create= */ true, &pools, error)) < 0)
                return r;
        if (mkdirat(pools.dir_fd, DEFAULT_POOL, 0700) < 0 && errno != EEXIST)
                return fail(error, errno, "mkdir", ret_path);
        fd = openat(pools.dir_fd, DEFAULT_POOL, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        return fd < 0 ? fail(error, errno, "open pool", ret_path) : fd;
}

int pool_open(const struct config *config, const char *name, char *ret_path, struct error *error)
{
        cleanup_close int fd = -EBADF;
        struct stat st;
        int r;

        if (name[0] == '.' || strchr(name, '/') != NULL)
                return fail_because(error, EINVAL, "open pool", name, "\"%.200s\" is not a pool's name", name);
        r = read_file(name, ret_path, error);
        if (r == -ENOENT && strcmp(name, DEFAULT_POOL) == 0)
                return open_default(config, ret_path, error);
        if (r == -ENOENT)
                return fail_because(error, ENOENT, "open pool", name, "there is no pool \"%.200s\"", name);
        if (r < 0)
                return r;
        fd = open(ret_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return fail(error, errno, "open pool", ret_path);
        if (fstat(fd, &st) < 0)
                return fail(error, errno, "fstat", ret_path);
        if ((r = check_owner(ret_path, &st, error)) < 0)
                return r;
        return fd_take(&fd);
}
