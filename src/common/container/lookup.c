/* SPDX-License-Identifier: Apache-2.0 */
#include "container/lookup.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"

#define SHORT_ID_LENGTH CONTAINER_ID_SHORT_LENGTH
#define FULL_ID_LENGTH CONTAINER_ID_FULL

/* Each finder returns 1: found, 0: unknown to this runtime, or negative errno. */
typedef int finder(const char *id, struct container_process *ret_process, struct error *error);

typedef int parser(const json_t *state, struct container_process *ret_process);

/* A runtime's JSON state file. */
static int read_state(const char *path, parser *parse, struct container_process *ret_process, struct error *error)
{
        cleanup_json json_t *state = NULL;
        int r = json_file_load(AT_FDCWD, path, JSON_OBJECT, &state, error);

        if (r == -ENOENT || r == -ENOTDIR)
                return 0;
        if (r < 0)
                return r;
        if (parse(state, ret_process) < 0)
                return fail_because(error, EBADMSG, "read container state", path, "it names no process");
        return 1;
}

/* A pid without a start time: record what else tells whether it still names the same process. */
static void add_age(const char *path, const char *full_id, struct container_process *process)
{
        struct stat st;

        if (stat(path, &st) == 0)
                process->written_s = st.st_mtim.tv_sec;
        (void)text_copy(process->full_id, sizeof process->full_id, strlen(full_id) == FULL_ID_LENGTH ? full_id : "");
}

/* A file that holds a pid and nothing else. */
static int read_pid_file(const char *path, const char *full_id, struct container_process *ret_process,
                         struct error *error)
{
        char text[32];
        ssize_t n = file_read(AT_FDCWD, path, text, sizeof text);

        if (n == -ENOENT || n == -ENOTDIR)
                return 0;
        if (n < 0)
                return fail(error, (int)-n, "read container state", path);
        if (state_file_pid(text, ret_process) < 0)
                return fail_because(error, EBADMSG, "read container state", path, "it holds no pid");
        add_age(path, full_id, ret_process);
        return 1;
}

static int find_crun(const char *id, struct container_process *ret_process, struct error *error)
{
        char path[PATH_MAX];

        (void)snprintf(path, sizeof path, "/run/crun/%s/status", id);
        return read_state(path, state_file_crun, ret_process, error);
}

static int read_runc_state(const char *root, const char *id, struct container_process *ret_process, struct error *error)
{
        char path[PATH_MAX];

        (void)snprintf(path, sizeof path, "%s/%s/state.json", root, id);
        return read_state(path, state_file_runc, ret_process, error);
}

static int find_runc(const char *id, struct container_process *ret_process, struct error *error)
{
        return read_runc_state("/run/runc", id, ret_process, error);
}

/*
 * Find the only full id in a directory that begins with a short one: 1 and ret_id (FULL_ID_LENGTH + 1 bytes), 0, or
 * ENOTUNIQ. A full id, or a text that is too short, is returned unchanged.
 */
static int complete_id(const char *directory, const char *id, char *ret_id, struct error *error)
{
        size_t length = strlen(id);
        struct dirent *entry;
        int found = 0;
        DIR *dir;

        if (length < SHORT_ID_LENGTH || length >= FULL_ID_LENGTH)
                return text_copy(ret_id, FULL_ID_LENGTH + 1, id) ? 1 : 0;
        dir = opendir(directory);
        if (dir == NULL)
                return 0;
        while (found <= 1 && (entry = readdir(dir)) != NULL)
                if (strcmp(entry->d_name, id) == 0) { /* a complete id of this length */
                        (void)text_copy(ret_id, FULL_ID_LENGTH + 1, id);
                        found = 1;
                        break;
                } else if (strlen(entry->d_name) == FULL_ID_LENGTH && text_starts(entry->d_name, id)) {
                        (void)text_copy(ret_id, FULL_ID_LENGTH + 1, entry->d_name);
                        found++;
                }
        (void)closedir(dir);
        if (found > 1)
                return fail_because(error, ENOTUNIQ, "find container", id, "several container ids in %s begin with it",
                                    directory);
        return found;
}

/* In one namespace of containerd: runc's state, if the runc shim keeps it, else the shim's pid file. */
static int find_containerd_in(const char *ns, const char *id, struct container_process *ret_process,
                              struct error *error)
{
        char directory[64];
        char root[64];
        char path[PATH_MAX];
        char full[FULL_ID_LENGTH + 1];
        int r;

        (void)snprintf(directory, sizeof directory, "/run/containerd/io.containerd.runtime.v2.task/%s", ns);
        r = complete_id(directory, id, full, error);
        if (r <= 0)
                return r;
        (void)snprintf(root, sizeof root, "/run/containerd/runc/%s", ns);
        r = read_runc_state(root, full, ret_process, error);
        if (r != 0)
                return r;
        (void)snprintf(path, sizeof path, "%s/%s/init.pid", directory, full);
        return read_pid_file(path, full, ret_process, error);
}

static int find_containerd(const char *id, struct container_process *ret_process, struct error *error)
{
        static const char *const namespaces[] = { "k8s.io", "default", "moby" };
        int r = 0;

        for (size_t i = 0; r == 0 && i < sizeof namespaces / sizeof namespaces[0]; i++)
                r = find_containerd_in(namespaces[i], id, ret_process, error);
        return r;
}

/* The full id of Docker's container with this name. */
static int docker_id_of_name(const char *name, char *ret_id)
{
        DIR *dir = opendir("/var/lib/docker/containers");
        struct dirent *entry;
        int found = 0;

        if (dir == NULL)
                return 0;
        while (found == 0 && (entry = readdir(dir)) != NULL) {
                cleanup_json json_t *config = NULL;
                struct error ignored; /* ignore broken files of other containers */
                char path[PATH_MAX];
                const char *has;

                if (strlen(entry->d_name) != FULL_ID_LENGTH)
                        continue;
                (void)snprintf(path, sizeof path, "%s/config.v2.json", entry->d_name);
                if (json_file_load(dirfd(dir), path, JSON_OBJECT, &config, &ignored) < 0)
                        continue;
                has = json_string_value(json_object_get(config, "Name"));
                if (has != NULL && strcmp(has[0] == '/' ? has + 1 : has, name) == 0) {
                        (void)text_copy(ret_id, FULL_ID_LENGTH + 1, entry->d_name);
                        found = 1;
                }
        }
        (void)closedir(dir);
        return found;
}

static int find_docker(const char *id, struct container_process *ret_process, struct error *error)
{
        cleanup_json json_t *config = NULL;
        char full[FULL_ID_LENGTH + 1];
        char path[PATH_MAX];
        int r = docker_id_of_name(id, full);

        if (r == 0 && strlen(id) >= SHORT_ID_LENGTH)
                r = complete_id("/var/lib/docker/containers", id, full, error);
        if (r <= 0)
                return r;
        r = read_runc_state("/run/docker/runtime-runc/moby", full, ret_process, error);
        if (r == 0)
                r = find_containerd_in("moby", full, ret_process, error);
        if (r != 0)
                return r;
        (void)snprintf(path, sizeof path, "/var/lib/docker/containers/%s/config.v2.json", full);
        r = json_file_load(AT_FDCWD, path, JSON_OBJECT, &config, error);
        if (r < 0)
                return r == -ENOENT ? 0 : r;
        if (state_file_docker(config, ret_process) < 0)
                return fail_because(error, EBADMSG, "read container state", path, "it has no \"State\".\"Pid\"");
        add_age(path, full, ret_process);
        return 1;
}

/* containers/storage has one array of ids and names per storage driver. */
static int podman_id_in(const char *path, const char *id, char *ret_id, struct error *error)
{
        cleanup_json json_t *containers = NULL;
        int found;
        int r = json_file_load(AT_FDCWD, path, JSON_ARRAY, &containers, error);

        if (r < 0)
                return r == -ENOENT || r == -ENOTDIR ? 0 : r;
        found = state_file_podman(containers, id, ret_id);
        if (found > 1)
                return fail_because(error, ENOTUNIQ, "find container", id, "several of podman's containers match");
        return found;
}

static int find_podman(const char *id, struct container_process *ret_process, struct error *error)
{
        static const char *const drivers[] = { "overlay", "vfs", "btrfs", "zfs" };
        char full[FULL_ID_LENGTH + 1];
        char path[PATH_MAX];
        int r = 0;

        for (size_t i = 0; r == 0 && i < sizeof drivers / sizeof drivers[0]; i++) {
                (void)snprintf(path, sizeof path, "/var/lib/containers/storage/%s-containers/containers.json",
                               drivers[i]);
                r = podman_id_in(path, id, full, error);
                if (r == 0) { /* containers of "podman run --rm" since containers/storage 1.42 */
                        (void)snprintf(path, sizeof path,
                                       "/run/containers/storage/%s-containers/volatile-containers.json", drivers[i]);
                        r = podman_id_in(path, id, full, error);
                }
                if (r == 0)
                        continue;
                if (r < 0 || (r = find_crun(full, ret_process, error)) != 0 ||
                    (r = find_runc(full, ret_process, error)) != 0)
                        return r;
                (void)snprintf(path, sizeof path, "/run/containers/storage/%s-containers/%s/userdata/pidfile",
                               drivers[i], full);
                r = read_pid_file(path, full, ret_process, error);
        }
        return r;
}

static int find_machined(const char *id, struct container_process *ret_process, struct error *error)
{
        char path[PATH_MAX];
        char text[8192];
        ssize_t n;

        (void)snprintf(path, sizeof path, "/run/systemd/machines/%s", id);
        n = file_read(AT_FDCWD, path, text, sizeof text);
        if (n == -ENOENT || n == -ENOTDIR)
                return 0;
        if (n < 0)
                return fail(error, (int)-n, "read container state", path);
        if (state_file_machined(text, ret_process) < 0)
                return fail_because(error, EBADMSG, "read container state", path, "it names no LEADER");
        add_age(path, "", ret_process);
        return 1;
}

static const struct {
        const char *name;
        finder *find;
} runtimes[] = {
        { "crun", find_crun },     { "runc", find_runc },     { "containerd", find_containerd },
        { "docker", find_docker }, { "podman", find_podman }, { "machined", find_machined },
};

#define RUNTIME_COUNT (sizeof runtimes / sizeof runtimes[0])

const char *container_lookup_runtimes(void)
{
        return "crun, runc, containerd, docker, podman, machined";
}

bool container_lookup_runtime_known(const char *runtime)
{
        for (size_t i = 0; i < RUNTIME_COUNT; i++)
                if (strcmp(runtime, runtimes[i].name) == 0)
                        return true;
        return false;
}

int container_lookup_find(const char *id, const char *runtime, struct container_process *ret_process,
                          struct error *error)
{
        struct container_process found = {};
        const char *finder_name = NULL;
        bool known = false;

        assert(strchr(id, '/') == NULL && id[0] != '.');
        for (size_t i = 0; i < RUNTIME_COUNT; i++) {
                struct container_process process;
                int r;

                if (runtime != NULL && strcmp(runtime, runtimes[i].name) != 0)
                        continue;
                r = runtimes[i].find(id, &process, error);
                if (r < 0)
                        return r;
                if (r == 0)
                        continue;
                known = true;
                if (process.pid <= 0)
                        continue; /* stopped */
                if (found.pid > 0 && found.pid != process.pid)
                        return fail_because(error, ENOTUNIQ, "find container", id,
                                            "%s and %s both run a container of this name; choose one with \"runtime\"",
                                            finder_name, runtimes[i].name);
                if (found.pid <= 0 || found.start_time == 0) {
                        found = process;
                        finder_name = runtimes[i].name;
                }
        }
        if (found.pid > 0) {
                *ret_process = found;
                return 0;
        }
        if (known)
                return fail_because(error, ESRCH, "find container", id, "the container is not running");
        return fail_because(error, ENOENT, "find container", id, "no container of this name or id in %s",
                            runtime != NULL ? runtime : container_lookup_runtimes());
}
