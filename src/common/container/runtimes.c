/* SPDX-License-Identifier: Apache-2.0 */
#include "container/runtimes.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"

#define SHIMS "io.containerd.runtime.v2.task"
#define CONTAINERD "/run/containerd"
#define STORAGE "/var/lib/containers/storage"
#define RUNC_OF_SHIMS "/run/containerd/runc" /* the runc shim's, wherever containerd keeps its own state */

typedef int finder(const struct runtime_dir *dir, const char *space, const struct runtime_wanted *wanted,
                   char *ret_full, struct container_process *ret_process, struct error *error);

typedef int parser(const json_t *state, struct container_process *ret_process);

static int fail_content(const struct runtime_dir *dir, const char *path, const char *reason, struct error *error)
{
        char name[PATH_MAX];

        runtime_dir_name(dir, path, name);
        return fail_because(error, EBADMSG, OPERATION_READ_CONTAINER_STATE, name, "%s", reason);
}

/* A runtime's JSON state file. */
static int read_state(const struct runtime_dir *dir, const char *path, parser *parse,
                      struct container_process *ret_process, struct error *error)
{
        cleanup_json json_t *state = NULL;
        int r = runtime_dir_json(dir, path, JSON_OBJECT, &state, /* ret_written_s= */ NULL, error);

        if (r <= 0)
                return r;
        return parse(state, ret_process) < 0 ? fail_content(dir, path, "it names no process", error) : 1;
}

/* What else tells whether a pid without a start time still names the same process. */
static void add_age(struct container_process *process, int64_t written_s, const char *full_id)
{
        process->written_s = written_s;
        (void)text_copy(process->full_id, sizeof process->full_id, strlen(full_id) == CONTAINER_ID_FULL ? full_id : "");
}

/* A file that holds a pid and nothing else. */
static int read_pid_file(const struct runtime_dir *dir, const char *path, const char *full_id,
                         struct container_process *ret_process, struct error *error)
{
        char text[32];
        int64_t written_s;
        int r = runtime_dir_text(dir, path, text, sizeof text, &written_s, error);

        if (r <= 0)
                return r;
        if (state_file_pid(text, ret_process) < 0)
                return fail_content(dir, path, "it holds no pid", error);
        add_age(ret_process, written_s, full_id);
        return 1;
}

static int find_crun(const struct runtime_dir *dir, const char *space, const struct runtime_wanted *wanted,
                     char *ret_full, struct container_process *ret_process, struct error *error)
{
        char path[PATH_MAX];

        (void)space;
        ret_full[0] = '\0';
        (void)snprintf(path, sizeof path, "%s/status", wanted->id);
        return read_state(dir, path, state_file_crun, ret_process, error);
}

static int find_runc(const struct runtime_dir *dir, const char *space, const struct runtime_wanted *wanted,
                     char *ret_full, struct container_process *ret_process, struct error *error)
{
        char path[PATH_MAX];

        (void)space;
        ret_full[0] = '\0';
        (void)snprintf(path, sizeof path, "%s/state.json", wanted->id);
        return read_state(dir, path, state_file_runc, ret_process, error);
}

/* The state that another runtime keeps for an engine, in a directory of its own. */
static int read_of_engine(const char *path, uid_t owner, finder *find, const char *space, const char *id,
                          struct container_process *ret_process, struct error *error)
{
        const struct runtime_wanted wanted = { .id = id };
        cleanup_runtime_dir struct runtime_dir dir = { .fd = -EBADF };
        char full[CONTAINER_ID_FULL + 1];
        int r = runtime_dir_open(path, owner, &dir, error);

        return r <= 0 ? r : find(&dir, space, &wanted, full, ret_process, error);
}

/* The directory is named after the shim, or after an alias: either runtime may keep its state in it. */
static int read_of_shim(const char *path, uid_t owner, const char *id, struct container_process *ret_process,
                        struct error *error)
{
        int r = read_of_engine(path, owner, find_runc, "", id, ret_process, error);

        return r != 0 ? r : read_of_engine(path, owner, find_crun, "", id, ret_process, error);
}

struct completion {
        const char *begin;
        char *full;
        const char *directory;
        bool found;
};

static int complete(const char *name, void *argument, struct error *error)
{
        struct completion *completion = argument;

        if (strlen(name) != CONTAINER_ID_FULL || !text_starts(name, completion->begin))
                return 0;
        if (completion->found)
                return fail_because(error, ENOTUNIQ, OPERATION_FIND_CONTAINER, completion->begin,
                                    "two ids in %s begin with it: %s and %s", completion->directory, completion->full,
                                    name);
        completion->found = true;
        (void)text_copy(completion->full, CONTAINER_ID_FULL + 1, name);
        return 0;
}

/*
 * The id of the container in a directory that has an entry for each: what is asked for, or the only one that begins so.
 * Only the second reads the directory. 1, 0 or negative errno.
 */
static int complete_id(const struct runtime_dir *dir, const char *path, const struct runtime_wanted *wanted,
                       char *ret_full, struct error *error)
{
        struct completion completion = { .begin = wanted->id, .full = ret_full, .directory = dir->path };
        char entry[PATH_MAX];
        int r;

        if (!wanted->prefix) {
                (void)snprintf(entry, sizeof entry, "%s/%s", path, wanted->id);
                return text_copy(ret_full, CONTAINER_ID_FULL + 1, wanted->id) && runtime_dir_has(dir, entry);
        }
        r = runtime_dir_each(dir, path, complete, &completion, error);
        return r < 0 ? r : completion.found;
}

/* The runtime's state, if the runc shim has it kept, else the shim's pid file. */
static int find_containerd(const struct runtime_dir *dir, const char *space, const struct runtime_wanted *wanted,
                           char *ret_full, struct container_process *ret_process, struct error *error)
{
        char path[PATH_MAX];
        int r;

        (void)snprintf(path, sizeof path, SHIMS "/%s", space);
        r = complete_id(dir, path, wanted, ret_full, error);
        if (r <= 0)
                return r;
        (void)snprintf(path, sizeof path, RUNC_OF_SHIMS "/%s", space);
        if ((r = read_of_shim(path, dir->owner, ret_full, ret_process, error)) != 0)
                return r;
        (void)snprintf(path, sizeof path, SHIMS "/%s/%s/init.pid", space, ret_full);
        r = read_pid_file(dir, path, ret_full, ret_process, error);
        return r < 0 ? r : 1;
}

/* ---- Docker: a space is a directory with an entry for each container. With userns-remap it lies in UID.GID. */

#define DOCKER_SPACE "containers"

static bool docker_space_of(const char *directory, char ret_space[RUNTIME_SPACE_MAX])
{
        static const char digits[] = "0123456789";
        const char *gid = directory + strspn(directory, digits);

        if (gid == directory || gid[0] != '.' || gid[1] == '\0' || gid[1 + strspn(gid + 1, digits)] != '\0')
                return false;
        return snprintf(ret_space, RUNTIME_SPACE_MAX, "%s/" DOCKER_SPACE, directory) < RUNTIME_SPACE_MAX;
}

struct name_search {
        const struct runtime_dir *dir;
        const char *space;
        const char *name;
        const char *text; /* NAME": Docker's names have nothing that JSON would write otherwise */
        char *full;
};

static int match_docker_name(const char *id, void *argument, struct error *error)
{
        const struct name_search *search = argument;
        cleanup_json json_t *config = NULL;
        struct error ignored; /* ignore broken files of other containers */
        char path[PATH_MAX];
        const char *has;

        (void)error;
        if (strlen(id) != CONTAINER_ID_FULL)
                return 0;
        (void)snprintf(path, sizeof path, "%s/%s/config.v2.json", search->space, id);
        if (runtime_dir_contains(search->dir, path, search->text, &ignored) <= 0 ||
            runtime_dir_json(search->dir, path, JSON_OBJECT, &config, NULL, &ignored) <= 0)
                return 0;
        has = json_string_value(json_object_get(config, "Name"));
        if (has == NULL || strcmp(has[0] == '/' ? has + 1 : has, search->name) != 0)
                return 0;
        (void)text_copy(search->full, CONTAINER_ID_FULL + 1, id);
        return 1;
}

/* What the runtime keeps for Docker, or containerd, in this namespace of containerd. */
static int find_of_docker(uid_t owner, const char *name_space, const char *id, struct container_process *ret_process,
                          struct error *error)
{
        char path[PATH_MAX];
        int r;

        (void)snprintf(path, sizeof path, "/run/docker/runtime-runc/%s", name_space);
        r = read_of_shim(path, owner, id, ret_process, error);
        return r != 0 ? r : read_of_engine(CONTAINERD, owner, find_containerd, name_space, id, ret_process, error);
}

/*
 * A container's name is only in its own file, and Docker has no index of names on the disk: a name, which is no id, costs
 * five system calls for each container of the node, also for those that do not run, until it is found. An id costs the same
 * however many there are, and the beginning of one a list of the directory.
 */
static int find_docker(const struct runtime_dir *dir, const char *space, const struct runtime_wanted *wanted,
                       char *ret_full, struct container_process *ret_process, struct error *error)
{
        char text[NAME_MAX + 2];
        struct name_search search = { .dir = dir, .space = space, .name = wanted->id, .text = text, .full = ret_full };
        cleanup_json json_t *config = NULL;
        char remapped[RUNTIME_SPACE_MAX + sizeof "moby-"];
        int64_t written_s = 0;
        char path[PATH_MAX];
        int r = complete_id(dir, space, wanted, ret_full, error);

        (void)snprintf(text, sizeof text, "%s\"", wanted->id);
        if (r == 0 && !wanted->prefix)
                r = runtime_dir_each(dir, space, match_docker_name, &search, error);
        if (r <= 0)
                return r;
        r = find_of_docker(dir->owner, "moby", ret_full, ret_process, error);
        if (r == 0 && strchr(space, '/') != NULL) { /* userns-remap; Docker 20.10 has "moby" then, too */
                (void)snprintf(remapped, sizeof remapped, "moby-%.*s", (int)strcspn(space, "/"), space);
                r = find_of_docker(dir->owner, remapped, ret_full, ret_process, error);
        }
        if (r != 0)
                return r;
        (void)snprintf(path, sizeof path, "%s/%s/config.v2.json", space, ret_full);
        r = runtime_dir_json(dir, path, JSON_OBJECT, &config, &written_s, error);
        if (r <= 0)
                return r;
        if (state_file_docker(config, ret_process) < 0)
                return fail_content(dir, path, "it has no \"State\".\"Pid\"", error);
        add_age(ret_process, written_s, ret_full);
        return 1;
}

/*
 * containers/storage has one array of ids and names per storage driver, which is read and parsed as a whole: what that
 * costs grows with the containers.
 */
static int read_storage(const struct runtime_dir *dir, const char *path, const struct runtime_wanted *wanted,
                        char *ret_full, struct error *error)
{
        cleanup_json json_t *containers = NULL;
        char other[CONTAINER_ID_FULL + 1];
        int r = runtime_dir_json(dir, path, JSON_ARRAY, &containers, /* ret_written_s= */ NULL, error);

        if (r <= 0)
                return r;
        r = state_file_podman(containers, wanted->id, wanted->prefix, ret_full, other);
        if (r > 1)
                return fail_because(error, ENOTUNIQ, OPERATION_FIND_CONTAINER, wanted->id,
                                    "two containers in %s match: %s and %s", dir->path, ret_full, other);
        return r;
}

/* Where Podman keeps what ends with the boot: of root, or of a user. */
static void run_directory(uid_t owner, const char *name, char *ret_path)
{
        if (owner == 0)
                (void)snprintf(ret_path, PATH_MAX, "/run/%s", name);
        else
                (void)snprintf(ret_path, PATH_MAX, "/run/user/%u/%s", owner, name);
}

/* By a full id the container's directory is found, however many there are: Podman makes it with the container. */
static bool has_directory(const struct runtime_dir *dir, const char *space, const struct runtime_wanted *wanted)
{
        char path[PATH_MAX];

        if (wanted->prefix || strlen(wanted->id) != CONTAINER_ID_FULL ||
            strspn(wanted->id, "0123456789abcdef") != CONTAINER_ID_FULL)
                return false;
        (void)snprintf(path, sizeof path, "%s-containers/%s", space, wanted->id);
        return runtime_dir_has(dir, path);
}

/* A state directory of Podman is its graph root: the storage of images and containers. */
static int find_podman(const struct runtime_dir *dir, const char *space, const struct runtime_wanted *wanted,
                       char *ret_full, struct container_process *ret_process, struct error *error)
{
        cleanup_runtime_dir struct runtime_dir run = { .fd = -EBADF };
        char directory[PATH_MAX];
        char path[PATH_MAX];
        int r;

        run_directory(dir->owner, dir->owner == 0 ? "containers/storage" : "containers", directory);
        if ((r = runtime_dir_open(directory, dir->owner, &run, error)) < 0)
                return r;
        (void)snprintf(path, sizeof path, "%s-containers/containers.json", space);
        if (has_directory(dir, space, wanted))
                r = text_copy(ret_full, CONTAINER_ID_FULL + 1, wanted->id);
        else
                r = read_storage(dir, path, wanted, ret_full, error);
        if (r == 0 && run.fd >= 0) { /* containers of "podman run --rm" since containers/storage 1.42 */
                (void)snprintf(path, sizeof path, "%s-containers/volatile-containers.json", space);
                r = read_storage(&run, path, wanted, ret_full, error);
        }
        if (r <= 0)
                return r;
        run_directory(dir->owner, "crun", path);
        if ((r = read_of_engine(path, dir->owner, find_crun, "", ret_full, ret_process, error)) != 0)
                return r;
        run_directory(dir->owner, "runc", path);
        if ((r = read_of_engine(path, dir->owner, find_runc, "", ret_full, ret_process, error)) != 0)
                return r;
        (void)snprintf(path, sizeof path, "%s-containers/%s/userdata/pidfile", space, ret_full);
        if (run.fd >= 0)
                r = read_pid_file(&run, path, ret_full, ret_process, error);
        return r < 0 ? r : 1;
}

/* CRI-O shares containers/storage with Podman; it adds a file of its own to each container's directory. */
static int find_crio(const struct runtime_dir *dir, const char *space, const struct runtime_wanted *wanted,
                     char *ret_full, struct container_process *ret_process, struct error *error)
{
        int64_t written_s = 0;
        cleanup_json json_t *state = NULL;
        char path[PATH_MAX];
        int r;

        (void)snprintf(path, sizeof path, "%s-containers", space);
        r = complete_id(dir, path, wanted, ret_full, error);
        if (r == 0 && !wanted->prefix) {
                (void)snprintf(path, sizeof path, "%s-containers/containers.json", space);
                r = read_storage(dir, path, wanted, ret_full, error);
        }
        if (r <= 0)
                return r;
        (void)snprintf(path, sizeof path, "%s-containers/%s/userdata/state.json", space, ret_full);
        r = runtime_dir_json(dir, path, JSON_OBJECT, &state, &written_s, error);
        if (r <= 0)
                return r;
        if (state_file_crio(state, ret_process) < 0)
                return fail_content(dir, path, "it names no process", error);
        if (ret_process->start_time == 0)
                add_age(ret_process, written_s, ret_full);
        return 1;
}

static int find_machined(const struct runtime_dir *dir, const char *space, const struct runtime_wanted *wanted,
                         char *ret_full, struct container_process *ret_process, struct error *error)
{
        char text[8192];
        int64_t written_s;
        int r = runtime_dir_text(dir, wanted->id, text, sizeof text, &written_s, error);

        (void)space;
        ret_full[0] = '\0';
        if (r <= 0)
                return r;
        r = state_file_machined(text, ret_process);
        if (r == -EPERM)
                return 0; /* a user's machine, of a name that this user chose (systemd 258) */
        if (r < 0)
                return fail_content(dir, wanted->id, "it names no LEADER", error);
        add_age(ret_process, written_s, "");
        return 1;
}

/* LXC keeps no state file: a directory with the container's configuration says that there is such a container. */
static int find_lxc(const struct runtime_dir *dir, const char *space, const struct runtime_wanted *wanted,
                    char *ret_full, struct container_process *ret_process, struct error *error)
{
        int r;

        (void)space;
        ret_full[0] = '\0';
        if (!runtime_dir_has(dir, wanted->id))
                return 0;
        r = lxc_find(dir->path, wanted->id, ret_process, error);
        return r < 0 ? r : 1;
}

static const char *const docker_spaces[] = { DOCKER_SPACE, NULL };
static const char *const storage_drivers[] = { "overlay", "vfs", "btrfs", "zfs", NULL };

static const struct state_file_pod_keys containerd_keys = {
        .name_space = "io.kubernetes.cri.sandbox-namespace",
        .pod = "io.kubernetes.cri.sandbox-name",
        .container = "io.kubernetes.cri.container-name",
        .type = "io.kubernetes.cri.container-type",
};
static const struct state_file_pod_keys crio_keys = {
        .name_space = "io.kubernetes.pod.namespace",
        .pod = "io.kubernetes.pod.name",
        .container = "io.kubernetes.container.name",
        .type = "io.kubernetes.cri-o.ContainerType",
};
static const struct state_file_pod_keys docker_keys = {
        .name_space = "io.kubernetes.pod.namespace",
        .pod = "io.kubernetes.pod.name",
        .container = "io.kubernetes.container.name",
        .type = "io.kubernetes.docker.type",
};

const struct runtime runtimes[] = {
        { .name = "crun",
          .directories = { "/run/crun", "/run/user/0/crun" },
          .of_user = "crun",
          .own_bundles = true,
          .find = find_crun },
        { .name = "runc", .directories = { "/run/runc" }, .of_user = "runc", .own_bundles = true, .find = find_runc },
        { .name = "containerd",
          .directories = { CONTAINERD },
          .list_spaces = SHIMS,
          .prefixes = true,
          .find = find_containerd,
          .pod_space = "k8s.io",
          .pod_ids = { SHIMS "/", "" },
          .pod_labels = "config.json",
          .pod_object = "annotations",
          .pod_keys = &containerd_keys },
        { .name = "docker",
          .directories = { "/var/lib/docker" },
          .spaces = docker_spaces,
          .list_spaces = ".",
          .space_of = docker_space_of,
          .prefixes = true,
          .find = find_docker,
          .pod_ids = { "", "" },
          .pod_labels = "config.v2.json",
          .pod_object = "Config.Labels",
          .pod_keys = &docker_keys,
          .is_of_pod = state_file_docker_of_pod },
        { .name = "podman",
          .directories = { STORAGE },
          .spaces = storage_drivers,
          .prefixes = true,
          .find = find_podman },
        { .name = "crio",
          .directories = { STORAGE },
          .spaces = storage_drivers,
          .prefixes = true,
          .find = find_crio,
          .pod_ids = { "", "-containers" },
          .pod_labels = "userdata/config.json",
          .pod_object = "annotations",
          .pod_keys = &crio_keys },
        { .name = "lxc", .directories = { "/var/lib/lxc" }, .find = find_lxc },
        { .name = "incus",
          .directories = { "/var/lib/incus/containers", "/var/lib/lxd/containers",
                           "/var/snap/lxd/common/lxd/containers" },
          .find = find_lxc },
        { .name = "machined", .directories = { "/run/systemd/machines" }, .find = find_machined },
        {},
};
