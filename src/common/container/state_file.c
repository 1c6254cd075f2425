/* SPDX-License-Identifier: Apache-2.0 */
#include "container/state_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/json.h"
#include "base/syscalls.h"
#include "base/text.h"

static int number_member(const json_t *object, const char *member, uint64_t *ret_number)
{
        const json_t *value = json_object_get(object, member);

        if (!json_is_integer(value) || json_integer_value(value) < 0)
                return -EBADMSG;
        *ret_number = (uint64_t)json_integer_value(value);
        return 0;
}

static int take(const json_t *state, const char *pid_member, const char *start_member,
                struct container_process *ret_process)
{
        uint64_t start_time = 0;
        uint64_t pid;

        if (number_member(state, pid_member, &pid) < 0 || pid > INT32_MAX)
                return -EBADMSG;
        (void)number_member(state, start_member, &start_time); /* not every version has it */
        *ret_process = (struct container_process){ .pid = (pid_t)pid, .start_time = start_time };
        return 0;
}

static void take_bundle(const char *bundle, struct container_process *ret_process)
{
        if (bundle == NULL || !text_copy(ret_process->bundle, sizeof ret_process->bundle, bundle))
                ret_process->bundle[0] = '\0';
}

int state_file_crun(const json_t *state, struct container_process *ret_process)
{
        int r = take(state, "pid", "process-start-time", ret_process);

        if (r == 0)
                take_bundle(json_string_value(json_object_get(state, "bundle")), ret_process);
        return r;
}

int state_file_runc(const json_t *state, struct container_process *ret_process)
{
        const json_t *labels = json_object_get(json_object_get(state, "config"), "labels");
        int r = take(state, "init_process_pid", "init_process_start", ret_process);
        const json_t *label;
        size_t i;

        json_array_foreach (labels, i, label)
                if (r == 0 && json_is_string(label) && text_starts(json_string_value(label), "bundle="))
                        take_bundle(json_string_value(label) + strlen("bundle="), ret_process);
        return r;
}

/*
 * pid is of the state that the OCI runtime gave last, and 0 or absent when the container has ended; initPid stays. The
 * start time is a string of clock ticks; older versions have a number of seconds instead, of another clock.
 */
int state_file_crio(const json_t *state, struct container_process *ret_process)
{
        const char *start = json_string_value(json_object_get(state, "initStartTime"));
        uint64_t start_time = 0;
        uint64_t init = 0;
        uint64_t pid = 0;

        if (!json_is_string(json_object_get(state, "id")))
                return -EBADMSG;
        if (json_object_get(state, "pid") != NULL && (number_member(state, "pid", &pid) < 0 || pid > INT32_MAX))
                return -EBADMSG;
        if (json_object_get(state, "initPid") != NULL &&
            (number_member(state, "initPid", &init) < 0 || init > INT32_MAX))
                return -EBADMSG;
        if (start != NULL && !text_number(start, INT64_MAX, &start_time))
                return -EBADMSG;
        if (pid != 0 && init != 0)
                pid = init;
        *ret_process = (struct container_process){ .pid = (pid_t)pid, .start_time = start_time };
        return 0;
}

int state_file_docker(const json_t *config, struct container_process *ret_process)
{
        const json_t *state = json_object_get(config, "State");
        uint64_t pid;

        if (number_member(state, "Pid", &pid) < 0 || pid > INT32_MAX)
                return -EBADMSG;
        if (!json_is_true(json_object_get(state, "Running")))
                pid = 0;
        *ret_process = (struct container_process){ .pid = (pid_t)pid };
        return 0;
}

/* The number that ends with the line. */
static int take_pid(const char *text, struct container_process *ret_process)
{
        char digits[32];
        size_t length = strcspn(text, "\n");
        uint64_t pid;

        if (length >= sizeof digits)
                return -EBADMSG;
        (void)memcpy(digits, text, length);
        digits[length] = '\0';
        if (!text_number(digits, INT32_MAX, &pid))
                return -EBADMSG;
        *ret_process = (struct container_process){ .pid = (pid_t)pid };
        return 0;
}

int state_file_pid(const char *text, struct container_process *ret_process)
{
        return take_pid(text, ret_process);
}

int state_file_machined(const char *text, struct container_process *ret_process)
{
        static const char leader[] = "LEADER=";
        static const char user[] = "UID=";
        int r = -EBADMSG;

        for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
                line += *line == '\n';
                if (text_starts(line, user) && line[strlen(user) + strspn(line + strlen(user), "0")] != '\n')
                        return -EPERM;
                if (r != 0 && text_starts(line, leader))
                        r = take_pid(line + strlen(leader), ret_process);
        }
        return r;
}

int state_file_podman(const json_t *containers, const char *id, bool prefix, char *ret_id, char *ret_other)
{
        json_t *container;
        int found = 0;
        size_t i;

        json_array_foreach (containers, i, container) {
                const char *full = json_string_value(json_object_get(container, "id"));
                const json_t *name;
                size_t j;
                bool same;

                if (full == NULL || full[0] == '.' || strlen(full) > CONTAINER_ID_FULL || strchr(full, '/') != NULL)
                        continue;
                same = prefix ? text_starts(full, id) : strcmp(full, id) == 0;
                if (!prefix)
                        json_array_foreach (json_object_get(container, "names"), j, name)
                                same = same || (json_is_string(name) && strcmp(json_string_value(name), id) == 0);
                if (same)
                        (void)text_copy(found++ == 0 ? ret_id : ret_other, CONTAINER_ID_FULL + 1, full);
        }
        return found;
}

static bool has_label(const json_t *labels, const char *key, const char *value)
{
        return text_same(json_string_value(json_object_get(labels, key)), value);
}

bool state_file_is_of_pod(const json_t *labels, const struct state_file_pod_keys *keys, const char *name_space,
                          const char *pod, const char *name)
{
        return has_label(labels, keys->type, "container") && has_label(labels, keys->name_space, name_space) &&
               has_label(labels, keys->pod, pod) && (name == NULL || has_label(labels, keys->container, name));
}

/* "/k8s_CONTAINER_POD_NAMESPACE_UID_ATTEMPT": none of them has a "_". */
bool state_file_docker_of_pod(const json_t *config, const char *name_space, const char *pod, const char *name)
{
        static const char begin[] = "/k8s_";
        const char *part = json_string_value(json_object_get(config, "Name"));
        char rest[512];
        size_t length;

        if (part == NULL || !text_starts(part, begin))
                return false;
        part += strlen(begin);
        length = strcspn(part, "_");
        (void)snprintf(rest, sizeof rest, "_%s_%s_", pod, name_space);
        return (name == NULL || (strlen(name) == length && strncmp(part, name, length) == 0)) &&
               text_starts(part + length, rest);
}

/* ---- a directory in which a container runtime keeps its state, and files beneath it */

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

int runtime_dir_contains(const struct runtime_dir *dir, const char *path, const char *text, struct error *error)
{
        cleanup_close int fd = -EBADF;
        char name[PATH_MAX];
        struct stat st = {};
        size_t size;
        char *content;
        ssize_t n;
        int r = open_file(dir, path, &fd, name, &st, error);

        if (r <= 0)
                return r;
        if (st.st_size > (off_t)JSON_FILE_MAX_BYTES)
                return 1;
        size = (size_t)st.st_size + 4096; /* it may grow meanwhile */
        if ((content = malloc(size)) == NULL)
                return fail(error, ENOMEM, OPERATION_READ_CONTAINER_STATE, name);
        n = file_read_fd(fd, content, size);
        r = n < 0 ? fail(error, (int)-n, OPERATION_READ_CONTAINER_STATE, name)
                  : memmem(content, (size_t)n, text, strlen(text)) != NULL;
        free(content);
        return r;
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
