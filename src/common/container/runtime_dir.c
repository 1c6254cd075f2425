/* SPDX-License-Identifier: Apache-2.0 */
#include "container/runtime_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/json.h"
#include "base/syscalls.h"

#define USER_FILE_MAX_BYTES (1024L * 1024) /* of a user's file, who could make it cost memory */

static bool is_absent(int errnum)
{
        return errnum == ENOENT || errnum == ENOTDIR;
}

static int refuse_writable(const char *path, struct error *error)
{
        return fail_because(error, EPERM, OPERATION_READ_CONTAINER_STATE, path,
                            "other users than its owner may write to %s: make it writable by the owner alone", path);
}

int runtime_dir_open(const char *path, uid_t owner, struct runtime_dir *ret_dir, struct error *error)
{
        cleanup_close int fd = sys_openat2(AT_FDCWD, path, O_PATH | O_DIRECTORY, 0, RESOLVE_NO_MAGICLINKS);
        struct stat st;

        if (fd < 0 && is_absent(errno))
                return 0;
        if (fd < 0 || fstat(fd, &st) < 0)
                return fail(error, errno, OPERATION_OPEN, path);
        if (st.st_uid != owner)
                return 0;
        if ((st.st_mode & (owner == 0 ? S_IWGRP | S_IWOTH : S_IWOTH)) != 0)
                return refuse_writable(path, error);
        *ret_dir = (struct runtime_dir){ .fd = fd_take(&fd), .path = path, .owner = owner };
        return 1;
}

void runtime_dir_close(struct runtime_dir *dir)
{
        fd_close(&dir->fd);
}

static int open_beneath(const struct runtime_dir *dir, const char *path, uint64_t flags)
{
        const uint64_t careful = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV;

        return sys_openat2(dir->fd, path, flags, 0, RESOLVE_NO_MAGICLINKS | (dir->owner != 0 ? careful : 0));
}

void runtime_dir_name(const struct runtime_dir *dir, const char *path, char *ret_name)
{
        (void)snprintf(ret_name, PATH_MAX, "%.2000s/%.2000s", dir->path, path);
}

/*
 * Open a file that nobody but the directory's owner, or root, may write. 1, 0 there is none, or negative errno. ret_name:
 * for messages, of PATH_MAX bytes.
 */
static int open_file(const struct runtime_dir *dir, const char *path, int *ret_fd, char *ret_name, struct stat *ret_st,
                     struct error *error)
{
        cleanup_close int fd = open_beneath(dir, path, O_RDONLY | O_NOCTTY | O_NONBLOCK);

        if (fd < 0 && is_absent(errno))
                return 0;
        runtime_dir_name(dir, path, ret_name);
        if (fd < 0 || fstat(fd, ret_st) < 0)
                return fail(error, errno, OPERATION_READ_CONTAINER_STATE, ret_name);
        if (!S_ISREG(ret_st->st_mode))
                return fail_because(error, EBADMSG, OPERATION_READ_CONTAINER_STATE, ret_name, "not a regular file");
        if (ret_st->st_uid != dir->owner)
                return fail_because(error, EPERM, OPERATION_READ_CONTAINER_STATE, ret_name, "it belongs to user %u",
                                    ret_st->st_uid);
        if ((ret_st->st_mode & (dir->owner == 0 ? S_IWGRP | S_IWOTH : S_IWOTH)) != 0)
                return refuse_writable(ret_name, error);
        if (dir->owner != 0 && ret_st->st_size > USER_FILE_MAX_BYTES)
                return fail(error, EFBIG, OPERATION_READ_CONTAINER_STATE, ret_name);
        *ret_fd = fd_take(&fd);
        return 1;
}

int runtime_dir_json(const struct runtime_dir *dir, const char *path, json_type type, json_t **ret_value,
                     int64_t *ret_written_s, struct error *error)
{
        cleanup_close int fd = -EBADF;
        char name[PATH_MAX];
        struct stat st = {};
        int r = open_file(dir, path, &fd, name, &st, error);

        if (r <= 0)
                return r;
        if (ret_written_s != NULL)
                *ret_written_s = st.st_mtim.tv_sec;
        r = json_file_load_fd(fd, name, type, ret_value, error);
        return r < 0 ? r : 1;
}

int runtime_dir_text(const struct runtime_dir *dir, const char *path, char *ret_text, size_t size,
                     int64_t *ret_written_s, struct error *error)
{
        cleanup_close int fd = -EBADF;
        char name[PATH_MAX];
        struct stat st = {};
        ssize_t n;
        int r = open_file(dir, path, &fd, name, &st, error);

        if (r <= 0)
                return r;
        n = file_read_fd(fd, ret_text, size);
        if (n < 0)
                return fail(error, (int)-n, OPERATION_READ_CONTAINER_STATE, name);
        *ret_written_s = st.st_mtim.tv_sec;
        return 1;
}

bool runtime_dir_has(const struct runtime_dir *dir, const char *path)
{
        cleanup_close int fd = open_beneath(dir, path, O_PATH | O_NOFOLLOW);

        return fd >= 0;
}

int runtime_dir_each(const struct runtime_dir *dir, const char *path, runtime_dir_visit *visit, void *argument,
                     struct error *error)
{
        cleanup_close int fd = open_beneath(dir, path, O_RDONLY | O_DIRECTORY);
        DIR *directory = fd < 0 ? NULL : fdopendir(fd);
        const struct dirent *entry;
        int r = 0;

        if (directory == NULL)
                return fd < 0 && is_absent(errno) ? 0 : fail(error, errno, OPERATION_OPEN, path);
        (void)fd_take(&fd); /* closedir() closes it */
        while (r == 0 && (errno = 0, entry = readdir(directory)) != NULL)
                if (entry->d_name[0] != '.')
                        r = visit(entry->d_name, argument, error);
        if (r == 0 && errno != 0)
                r = fail(error, errno, "read", path);
        (void)closedir(directory);
        return r;
}
