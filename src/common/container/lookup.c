/* SPDX-License-Identifier: Apache-2.0 */
#include "container/lookup.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "container/runtimes.h"
#include "process/proc.h"

const char *container_lookup_runtimes(void)
{
        static char names[256]; /* kept: it is made once, and callers point to it */
        size_t end = strlen(names);

        if (end == 0)
                for (const struct runtime *runtime = runtimes; runtime->name != NULL; runtime++)
                        end += (size_t)snprintf(names + end, sizeof names - end, "%s%s", end > 0 ? ", " : "",
                                                runtime->name);
        return names;
}

bool container_lookup_runtime_known(const char *name)
{
        for (const struct runtime *runtime = runtimes; runtime->name != NULL; runtime++)
                if (strcmp(name, runtime->name) == 0)
                        return true;
        return false;
}

/* What was found so far. */
struct search {
        const struct container_lookup *where;
        const char *subject; /* what is looked for, in messages */
        const struct runtime_wanted *wanted;
        const char *name_space; /* of a pod's container */
        const char *pod;
        const char *container;
        const char *id; /* the one of the pod's containers that may have it */
        struct container_process found;
        const struct runtime *runtime; /* that has it */
        char full[CONTAINER_ID_FULL + 1];
        bool known; /* a runtime has it, running or not */
        bool brief; /* it could be the beginning of an id, and is too short for one */
};

/* What crun and runc keep of a container that has ended, until it is deleted: its process is no more. */
static bool has_ended(const struct container_process *process)
{
        cleanup_close int proc_fd = -EBADF;
        uint64_t start_time = 0;
        char path[32];
        pid_t pid;

        if (process->start_time == 0)
                return false; /* nobody knows */
        (void)snprintf(path, sizeof path, "/proc/%d", process->pid);
        proc_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        return proc_fd < 0 ? errno == ENOENT
                           : proc_start_time(proc_fd, &start_time, &pid) < 0 || start_time != process->start_time;
}

/* Two runtimes may have the same process: an engine, and the runtime that it runs. */
static int add(struct search *search, const struct runtime *runtime, const char *full,
               const struct container_process *process, struct error *error)
{
        search->known = true;
        if (process->pid <= 0)
                return 0; /* stopped */
        if (search->found.pid > 0 && search->found.pid != process->pid && has_ended(process))
                return 0;
        if (search->found.pid > 0 && search->found.pid != process->pid && has_ended(&search->found))
                search->found = (struct container_process){};
        if (search->found.pid > 0 && search->found.pid != process->pid && search->wanted != NULL &&
            !search->wanted->prefix)
                return fail_because(error, ENOTUNIQ, OPERATION_FIND_CONTAINER, search->subject,
                                    "%s and %s both run a container of this name; choose one with \"runtime\"",
                                    search->runtime->name, runtime->name);
        if (search->found.pid > 0 && search->found.pid != process->pid)
                return fail_because(error, ENOTUNIQ, OPERATION_FIND_CONTAINER, search->subject,
                                    "two containers match: %s (%s) and %s (%s)", search->full, search->runtime->name,
                                    full, runtime->name);
        if (search->found.pid <= 0 || search->found.start_time == 0) {
                search->found = *process;
                search->runtime = runtime;
                (void)text_copy(search->full, sizeof search->full, full);
        }
        return 0;
}

/* Called for every space of every state directory of a runtime. */
typedef int visitor(struct search *search, const struct runtime *runtime, const struct runtime_dir *dir,
                    const char *space, struct error *error);

struct spaces {
        const struct runtime *runtime;
        size_t count;
        char names[RUNTIME_SPACES_MAX][RUNTIME_SPACE_MAX];
};

static int add_space(const char *name, void *argument, struct error *error)
{
        struct spaces *spaces = argument;
        char space[RUNTIME_SPACE_MAX];

        if (spaces->runtime->space_of != NULL ? !spaces->runtime->space_of(name, space)
                                              : !text_copy(space, sizeof space, name))
                return 0;
        if (spaces->count == RUNTIME_SPACES_MAX)
                return fail_because(error, E2BIG, OPERATION_FIND_CONTAINER, name, "%s has more than %d namespaces",
                                    spaces->runtime->name, RUNTIME_SPACES_MAX);
        (void)text_copy(spaces->names[spaces->count++], RUNTIME_SPACE_MAX, space);
        return 0;
}

static int visit_directory(struct search *search, const struct runtime *runtime, const char *path, visitor *visit,
                           struct error *error)
{
        cleanup_runtime_dir struct runtime_dir dir = { .fd = -EBADF };
        struct spaces spaces = { .runtime = runtime };
        int r = runtime_dir_open(path, search->where->user, &dir, error);

        if (r <= 0)
                return r;
        if (runtime->spaces == NULL && runtime->list_spaces == NULL)
                return visit(search, runtime, &dir, "", error);
        r = 0;
        for (size_t i = 0; r == 0 && runtime->spaces != NULL && runtime->spaces[i] != NULL; i++)
                r = visit(search, runtime, &dir, runtime->spaces[i], error);
        if (r == 0 && runtime->list_spaces != NULL)
                r = runtime_dir_each(&dir, runtime->list_spaces, add_space, &spaces, error);
        for (size_t i = 0; r == 0 && i < spaces.count; i++)
                r = visit(search, runtime, &dir, spaces.names[i], error);
        return r;
}

/* The usual directories, then those of the configuration. */
static int visit_runtime(struct search *search, const struct runtime *runtime, visitor *visit, struct error *error)
{
        const json_t *more = json_object_get(search->where->directories, runtime->name);
        char path[PATH_MAX];
        const json_t *item;
        size_t i;
        int r = 0;

        for (i = 0; r == 0 && search->where->user == 0 && runtime->directories[i] != NULL; i++)
                r = visit_directory(search, runtime, runtime->directories[i], visit, error);
        if (search->where->user != 0 && runtime->of_user != NULL) {
                (void)snprintf(path, sizeof path, "/run/user/%u/%s", search->where->user, runtime->of_user);
                r = visit_directory(search, runtime, path, visit, error);
        }
        json_array_foreach (more, i, item)
                if (r == 0 && text_path_normal(json_string_value(item), path) == 0) /* it was checked */
                        r = visit_directory(search, runtime, path, visit, error);
        return r;
}

static int visit_all(struct search *search, visitor *visit, struct error *error)
{
        int r = 0;

        for (const struct runtime *runtime = runtimes; r == 0 && runtime->name != NULL; runtime++)
                if (search->where->runtime == NULL || strcmp(search->where->runtime, runtime->name) == 0)
                        r = visit_runtime(search, runtime, visit, error);
        return r;
}

static int find_in(struct search *search, const struct runtime *runtime, const struct runtime_dir *dir,
                   const char *space, struct error *error)
{
        struct container_process process = {};
        char full[CONTAINER_ID_FULL + 1] = "";
        int r;

        if (search->wanted->prefix && !runtime->prefixes)
                return 0;
        r = runtime->find(dir, space, search->wanted, full, &process, error);
        if (r <= 0)
                return r;
        process.owner = dir->owner;
        return add(search, runtime, full, &process, error);
}

static int conclude(const struct search *search, struct container_process *ret_process, struct error *error)
{
        if (search->found.pid > 0) {
                *ret_process = search->found;
                (void)text_copy(ret_process->id, sizeof ret_process->id, search->full);
                ret_process->runtime = search->runtime->name;
                if (!search->runtime->own_bundles)
                        ret_process->bundle[0] = '\0';
                return 0;
        }
        if (search->known)
                return fail_because(error, ESRCH, OPERATION_FIND_CONTAINER, search->subject,
                                    "the container is not running");
        return fail_because(error, ENOENT, OPERATION_FIND_CONTAINER, search->subject, "no %s in %s%s",
                            search->pod != NULL ? "such container of a pod" : "container of this name or id",
                            search->where->runtime != NULL ? search->where->runtime : container_lookup_runtimes(),
                            search->brief ? "; the beginning of an id must have 12 characters" : "");
}

int container_lookup_find(const char *id, const struct container_lookup *where, struct container_process *ret_process,
                          struct error *error)
{
        struct runtime_wanted wanted = { .id = id };
        struct search search = { .where = where, .subject = id, .wanted = &wanted };
        int r;

        assert(strchr(id, '/') == NULL && id[0] != '.');
        r = visit_all(&search, find_in, error);
        if (r == 0 && !search.known && strlen(id) < CONTAINER_ID_FULL && strspn(id, "0123456789abcdef") == strlen(id)) {
                search.brief = strlen(id) < where->prefix_minimum;
                wanted.prefix = !search.brief;
        }
        if (wanted.prefix)
                r = visit_all(&search, find_in, error);
        return r < 0 ? r : conclude(&search, ret_process, error);
}

/* The object of a path of members, "Config.Labels". */
static const json_t *descend(const json_t *object, const char *path)
{
        while (*path != '\0') {
                size_t length = strcspn(path, ".");

                object = json_object_getn(object, path, length);
                path += length + (path[length] == '.');
        }
        return object;
}

/*
 * Whether a container of a runtime of Kubernetes is the pod's: then its process is added. any: one of all that there
 * are; if its labels cannot be read, it is not the one.
 */
static int check_labels(struct search *search, const struct runtime *runtime, const struct runtime_dir *dir,
                        const char *space, const char *id, bool any, struct error *error)
{
        const struct runtime_wanted wanted = { .id = id };
        struct container_process process = {};
        cleanup_json json_t *file = NULL;
        char full[CONTAINER_ID_FULL + 1] = "";
        struct error ignored;
        char path[PATH_MAX];
        int r;

        (void)snprintf(path, sizeof path, "%s%s%s/%s/%s", runtime->pod_ids[0], space, runtime->pod_ids[1], id,
                       runtime->pod_labels);
        r = runtime_dir_json(dir, path, JSON_OBJECT, &file, /* ret_written_s= */ NULL, any ? &ignored : error);
        if (r < 0 && any)
                return 0;
        if (r <= 0 ||
            !state_file_is_of_pod(descend(file, runtime->pod_object), runtime->pod_keys, search->name_space,
                                  search->pod, search->container) ||
            (runtime->is_of_pod != NULL &&
             !runtime->is_of_pod(file, search->name_space, search->pod, search->container)))
                return r < 0 ? r : 0;
        r = runtime->find(dir, space, &wanted, full, &process, error);
        return r <= 0 ? r : add(search, runtime, full, &process, error);
}

static bool has_pods(const struct runtime *runtime, const char *space)
{
        return runtime->pod_keys != NULL && (runtime->pod_space == NULL || strcmp(runtime->pod_space, space) == 0);
}

static int check_id(struct search *search, const struct runtime *runtime, const struct runtime_dir *dir,
                    const char *space, struct error *error)
{
        return has_pods(runtime, space) ? check_labels(search, runtime, dir, space, search->id, /* any= */ false, error)
                                        : 0;
}

struct listed {
        struct search *search;
        const struct runtime *runtime;
        const struct runtime_dir *dir;
        const char *space;
};

static int check_listed(const char *name, void *argument, struct error *error)
{
        const struct listed *listed = argument;

        if (strlen(name) != CONTAINER_ID_FULL)
                return 0;
        return check_labels(listed->search, listed->runtime, listed->dir, listed->space, name, /* any= */ true, error);
}

static int check_every(struct search *search, const struct runtime *runtime, const struct runtime_dir *dir,
                       const char *space, struct error *error)
{
        struct listed listed = { .search = search, .runtime = runtime, .dir = dir, .space = space };
        char path[PATH_MAX];

        if (!has_pods(runtime, space))
                return 0;
        (void)snprintf(path, sizeof path, "%s%s%s", runtime->pod_ids[0], space, runtime->pod_ids[1]);
        return runtime_dir_each(dir, path, check_listed, &listed, error);
}

/* POD_NAMESPACE_CONTAINER-ID.log, cut to 255 bytes: then the id is not whole, and the link is of no use. */
static int check_link(const char *name, void *argument, struct error *error)
{
        struct search *search = argument;
        char id[CONTAINER_ID_FULL + 1];
        char begin[512];
        size_t length = strlen(name);
        size_t end;

        (void)snprintf(begin, sizeof begin, "%s_%s_%s%s", search->pod, search->name_space,
                       search->container != NULL ? search->container : "", search->container != NULL ? "-" : "");
        if (!text_starts(name, begin) || !text_ends(name, ".log") || length < CONTAINER_ID_FULL + 5)
                return 0;
        end = length - 4;
        if (name[end - CONTAINER_ID_FULL - 1] != '-')
                return 0;
        (void)snprintf(id, sizeof id, "%s", name + end - CONTAINER_ID_FULL);
        if (strspn(id, "0123456789abcdef") != CONTAINER_ID_FULL)
                return 0;
        search->id = id;
        return visit_all(search, check_id, error);
}

int container_lookup_pod(const char *name_space, const char *pod, const char *name,
                         const struct container_lookup *where, struct container_process *ret_process,
                         struct error *error)
{
        cleanup_runtime_dir struct runtime_dir links = { .fd = -EBADF };
        struct search search = {
                .where = where, .subject = pod, .name_space = name_space, .pod = pod, .container = name
        };
        struct error ignored; /* the links only make it cheaper */
        int r = 0;

        if (runtime_dir_open("/var/log/containers", /* owner= */ 0, &links, &ignored) > 0)
                r = runtime_dir_each(&links, ".", check_link, &search, error);
        if (r == 0 && search.found.pid == 0)
                r = visit_all(&search, check_every, error);
        return r < 0 ? r : conclude(&search, ret_process, error);
}
