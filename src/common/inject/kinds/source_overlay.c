/* SPDX-License-Identifier: Apache-2.0 */
/* source_overlay.c - an overlay of directories of the node as the source of a mount. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/hash.h"
#include "base/json_value.h"
#include "base/node_path.h"
#include "base/syscalls.h"
#include "base/text.h"
#include "inject/attributes.h"
#include "inject/injection.h"
#include "inject/request/request_keys.h"
#include "inject/request/source.h"
#include "mount/detached.h"
#include "mount/scratch_namespace.h"
#include "mount/superblock.h"
#include "process/privileges.h"
#include "process/worker.h"

/* Opens a layer on the node; ret_path has PATH_MAX bytes. */
static int open_layer(struct injection *injection, const char *path, bool writes, char *ret_path, struct error *error)
{
        const struct policy *policy = injection_policy(injection);
        cleanup_close int fd = -EBADF;
        struct stat st;
        int r;

        if ((r = injection_check_path(injection, path, writes, error)) < 0)
                return r;
        fd = node_path_open_mounted(path, ret_path, error);
        if (fd < 0)
                return fd;
        if (fstat(fd, &st) < 0)
                return fail(error, errno, "fstat", path);
        if (!S_ISDIR(st.st_mode))
                return fail(error, ENOTDIR, OPERATION_OPEN_SOURCE, path);
        if (policy != NULL && (r = policy_check_source(policy, ret_path, writes, error)) < 0)
                return r;
        if (writes)
                use_keys_add_written(injection->record.uses, st.st_dev, st.st_ino);
        injection_digest_text(injection, ret_path);
        injection->layer_fds[injection->layer_count++] = fd_take(&fd);
        return 0;
}

/* The length of the directory that contains both normal paths; 0 for the root. */
static size_t common_length(const char *one, const char *other)
{
        size_t last = 0;

        for (size_t i = 0; one[i] != '\0' && one[i] == other[i]; i++)
                if (one[i] == '/')
                        last = i;
        return last;
}

/*
 * The kernel requires the upper and the work directory on the same mount. So the directory that contains both is cloned
 * and mapped, and they are looked up beneath it (docs/KERNEL.md#overlay).
 */
static int open_common(struct injection *injection, const char *upper, const char *work, struct error *error)
{
        const int *fds = injection->layer_fds + injection->layer_count - 2;
        char path[PATH_MAX];
        char resolved[PATH_MAX];
        struct mount_seen seen[3];
        size_t length = common_length(upper, work);
        int r = 0;

        (void)text_copy(path, length == 0 ? 2 : length + 1, length == 0 ? "/" : upper);
        injection->source_fd = node_path_open(path, resolved, error);
        if (injection->source_fd < 0)
                return injection->source_fd;
        for (int i = 0; r == 0 && i < 3; i++)
                r = mount_see(i < 2 ? fds[i] : injection->source_fd, "", &seen[i]);
        if (r < 0)
                return fail(error, -r, "statx", path);
        for (int i = 0; i < 2; i++)
                if (seen[i].identity.id != seen[2].identity.id)
                        return fail_because(
                                error, EXDEV, OPERATION_OPEN_SOURCE, i == 0 ? upper : work,
                                "\"upper\" and \"work\" must be directories of one mount, and not its root");
        (void)text_copy(injection->upper_rest, sizeof injection->upper_rest, upper + length + 1);
        (void)text_copy(injection->work_rest, sizeof injection->work_rest, work + length + 1);
        return 0;
}

static int open_layers(struct injection *injection, struct error *error)
{
        const struct request *request = injection->request;
        char path[PATH_MAX];
        char upper[PATH_MAX];
        char work[PATH_MAX];
        int r = 0;

        injection->source_digest = HASH_SEED;
        for (size_t i = 0; r == 0 && i < request->lower_count; i++)
                r = open_layer(injection, request->lower[i], /* writes= */ false, path, error);
        if (r < 0 || request->upper == NULL)
                return r;
        if ((r = open_layer(injection, request->upper, /* writes= */ true, upper, error)) < 0 ||
            (r = open_layer(injection, request->work, /* writes= */ true, work, error)) < 0)
                return r;
        if (text_path_normal(upper, path) < 0 || text_path_normal(work, upper) < 0)
                return fail(error, EINVAL, OPERATION_OPEN_SOURCE, upper);
        if (strcmp(path, upper) == 0)
                return fail_because(error, EINVAL, OPERATION_OPEN_SOURCE, path,
                                    "\"upper\" and \"work\" are the same directory");
        (void)text_copy(injection->record.origin, sizeof injection->record.origin, path);
        return open_common(injection, path, upper, error);
}

struct overlay_job {
        struct injection *injection;
        int layer_fds[REQUEST_LAYERS_MAX]; /* detached clones, topmost first */
        size_t layer_count;
        int common_fd; /* a clone of the directory that contains upper and work; or -EBADF */
        bool mapped;   /* the layers are id-mapped for the container */
        bool remapped; /* remap-daemon serves it: what the container sees, and what is locked, is the mount of that */
        bool attached; /* the clones are attached to a mount tree while the overlay is made */
};

/* Sets the upper or work directory in the clone, as "/proc/self/fd/N". */
static int set_writable(int context_fd, const struct overlay_job *job, const char *name, const char *rest,
                        int original_fd, int *ret_fd, struct error *error)
{
        int fd = sys_openat2(job->common_fd, rest, O_PATH | O_DIRECTORY, 0,
                             RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV);
        struct stat original;
        char link[64];
        struct stat st;

        *ret_fd = fd;
        if (fd < 0 || fstat(fd, &st) < 0 || fstat(original_fd, &original) < 0)
                return fail(error, errno, OPERATION_OPEN_SOURCE, rest);
        if (st.st_dev != original.st_dev || st.st_ino != original.st_ino)
                return fail_because(error, ESTALE, OPERATION_OPEN_SOURCE, rest,
                                    "the directory was replaced by another");
        (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        return superblock_set(context_fd, name, link, error);
}

/* The lower layers, by their names in the scratch namespace, or by their descriptors. */
static int set_lower(int context_fd, const struct overlay_job *job, struct error *error)
{
        char lower[256] = ""; /* fsconfig takes 256 bytes: hence the short names */
        int r = 0;

        for (size_t i = 0; r == 0 && i < job->layer_count; i++)
                if (job->attached)
                        (void)snprintf(lower + strlen(lower), sizeof lower - strlen(lower), "%s%zu", i > 0 ? ":" : "",
                                       i);
                else {
                        (void)snprintf(lower, sizeof lower, "/proc/self/fd/%d", job->layer_fds[i]);
                        r = superblock_set(context_fd, "lowerdir+", lower, error);
                }
        return job->attached ? superblock_set(context_fd, "lowerdir", lower, error) : r;
}

static int configure(int context_fd, const struct overlay_job *job, struct error *error)
{
        const struct injection *injection = job->injection;
        const int *writable = injection->layer_fds + job->layer_count;
        cleanup_close int upper_fd = -EBADF;
        cleanup_close int work_fd = -EBADF;
        int r;

        if ((r = superblock_set(context_fd, "source", "overlay", error)) < 0 ||
            (r = set_lower(context_fd, job, error)) < 0)
                return r;
        if (job->common_fd >= 0 &&
            ((r = set_writable(context_fd, job, "upperdir", injection->upper_rest, writable[0], &upper_fd, error)) <
                     0 ||
             (r = set_writable(context_fd, job, "workdir", injection->work_rest, writable[1], &work_fd, error)) < 0))
                return r;
        if ((r = superblock_options(context_fd, &injection->request->options, error)) < 0)
                return r;
        return superblock_create(context_fd, "overlay", error);
}

static int attach_layers(const struct overlay_job *job, struct error *error)
{
        int r = scratch_namespace_enter(error);

        for (size_t i = 0; r == 0 && i < job->layer_count; i++) {
                char name[16];

                (void)snprintf(name, sizeof name, "%zu", i);
                r = scratch_namespace_attach(job->layer_fds[i], name, /* directory= */ true, error);
        }
        if (r == 0 && job->common_fd >= 0)
                r = scratch_namespace_attach(job->common_fd, "common", /* directory= */ true, error);
        return r;
}

/*
 * In a process of its own on the node (worker_run_apart()). An overlay accesses its layers with its creator's ids: made
 * by the node's root, which an id-mapped upper layer does not map, it turns read-only (docs/KERNEL.md#overlay). So the
 * creator is the container's root (setfsuid).
 */
static int make_apart(void *argument, struct error *error)
{
        const struct overlay_job *job = argument;
        cleanup_close int context_fd = -EBADF;
        uid_t uid;
        gid_t gid;
        int r = job->attached ? attach_layers(job, error) : 0;

        if (r == 0 && job->mapped && (r = container_root_ids(job->injection->container, &uid, &gid, error)) == 0)
                r = privileges_file_owner(uid, gid, error);
        if (r < 0)
                return r;
        context_fd = superblock_open("overlay", error);
        if (context_fd < 0)
                return context_fd;
        if ((r = configure(context_fd, job, error)) < 0)
                return r;
        r = superblock_mount(context_fd, "overlay", 0, error);
        return r < 0 || job->remapped ? r
                                      : attributes_lock_here(job->injection, r, /* scratch= */ job->attached, error);
}

/* A clone of a layer, id-mapped for the container if mapped. */
static int clone_layer(const struct injection *injection, int layer_fd, const char *path, bool mapped,
                       struct error *error)
{
        cleanup_close int fd = detached_mount_clone(layer_fd, path, /* recursive= */ false, error);
        int r;

        if (fd < 0)
                return fd;
        if (mapped &&
            (r = detached_mount_map(fd, path, /* recursive= */ false, injection->container->user_ns_fd, error)) < 0) {
                if (error->reason[0] == '\0')
                        (void)snprintf(error->reason, sizeof error->reason,
                                       "the layer's owners cannot be mapped for the container: %s",
                                       error_text(error->errnum));
                return r;
        }
        return fd_take(&fd);
}

static int run_steps(struct overlay_job *job, struct error *error)
{
        struct injection *injection = job->injection;
        const struct request *request = injection->request;

        for (; job->layer_count < request->lower_count; job->layer_count++) {
                size_t i = job->layer_count;
                int fd = clone_layer(injection, injection->layer_fds[i], request->lower[i], job->mapped, error);

                if (fd < 0)
                        return fd;
                job->layer_fds[i] = fd;
        }
        if (request->upper != NULL) {
                job->common_fd = clone_layer(injection, injection->source_fd, request->upper, job->mapped, error);
                if (job->common_fd < 0)
                        return job->common_fd;
        }
        injection->mount_fd = worker_run_apart(make_apart, NULL, job, error);
        if (injection->mount_fd == -EINVAL) {
                /* before Linux 6.15 the layers have to be attached while it is made; then it has its own references */
                job->attached = true;
                injection->mount_fd = worker_run_apart(make_apart, NULL, job, error);
        }
        return injection->mount_fd < 0 ? injection->mount_fd : 0;
}

static int run_job(struct overlay_job *job, struct error *error)
{
        int r = run_steps(job, error);

        for (size_t i = 0; i < job->layer_count; i++)
                fd_close(&job->layer_fds[i]);
        fd_close(&job->common_fd);
        return r;
}

static bool writes_to(const struct mount_record *record, const void *argument)
{
        return strcmp(record->type, "overlay") == 0 && use_keys_have(record->uses, argument);
}

static int check_key(const struct injection *injection, const char *key, const char *path, struct error *error)
{
        char name[CONTAINER_NAME_MAX];
        int r = mount_record_find_live(&injection->session->state, key, &injection->record, writes_to, key, name,
                                       error);

        if (r < 0)
                return r == -ENOENT ? 0 : r;
        return fail_because(error, EBUSY, OPERATION_OPEN_SOURCE, path,
                            "an overlay in container %s has this as its upper or work directory already", name);
}

static int check_recorded(struct injection *injection, struct error *error)
{
        const char *const paths[] = { injection->request->upper,
                                      injection->request->work }; /* as open_layer() adds them */
        const char *keys = injection->record.uses;
        char key[USE_KEY_SIZE];
        size_t i = 0;
        int r = 0;

        while (r == 0 && i < 2 && use_keys_next(&keys, key))
                if (use_key_is_written(key))
                        r = check_key(injection, key, paths[i++], error);
        return r;
}

/* The kernel lets two overlays use one upper or work directory, with undefined results (docs/KERNEL.md#overlay). */
static int check_alone(const struct injection *injection, struct error *error)
{
        const struct request *request = injection->request;
        const int *fds = injection->layer_fds + request->lower_count;

        for (int i = 0; request->upper != NULL && i < 2; i++) {
                const char *path = i == 0 ? request->upper : request->work;
                char key[USE_KEYS_SIZE] = "";
                struct stat st;
                int r;

                if (fstat(fds[i], &st) < 0)
                        return fail(error, errno, "fstat", path);
                use_keys_add_written(key, st.st_dev, st.st_ino);
                if ((r = check_key(injection, key, path, error)) < 0)
                        return r;
        }
        return 0;
}

/* An overlay is a filesystem with files of users, whatever its layers are. */
static int check_layers(const struct injection *injection, struct error *error)
{
        int r = injection->source_fd >= 0 ? attributes_check_served(injection, injection->source_fd, error) : 0;

        for (size_t i = 0; r == 0 && i < injection->layer_count; i++)
                r = attributes_check_served(injection, injection->layer_fds[i], error);
        return r;
}

/* Before Linux 5.19 an overlay has no id-mapped layers, which is said in the kernel's log alone (docs/KERNEL.md#overlay). */
static void suspect_map(struct error *error)
{
        if (error->errnum == EINVAL && error->kernel[0] == '\0' && strcmp(error->operation, OPERATION_FSCONFIG) == 0)
                (void)snprintf(error->reason, sizeof error->reason,
                               "%s: dmesg says why; before Linux 5.19 no overlay has id-mapped layers: \"ids\": "
                               "\"remap\" remaps owners",
                               error_text(EINVAL));
}

static int make_overlay(struct injection *injection, bool owned, struct error *error)
{
        const bool own = injection->container->own_user_ns;
        const enum request_ids ids = own ? injection->request->ids : IDS_HOST;
        struct overlay_job job = { .injection = injection,
                                   .common_fd = -EBADF,
                                   .mapped = ids != IDS_HOST && ids != IDS_REMAP,
                                   .remapped = ids == IDS_REMAP };
        int r = check_alone(injection, error);

        (void)owned; /* never true: not ownable */
        if (r == 0) {
                r = run_job(&job, error);
                if (job.mapped && attributes_is_refusal(r) && injection_falls_back(injection)) {
                        /* perhaps for another reason: then this is refused for it, too */
                        job = (struct overlay_job){ .injection = injection, .common_fd = -EBADF, .remapped = true };
                        r = check_layers(injection, error);
                        r = r == 0 ? run_job(&job, error) : r;
                }
        }
        for (size_t i = 0; i < injection->layer_count; i++)
                fd_close(&injection->layer_fds[i]);
        injection->layer_count = 0;
        fd_close(&injection->source_fd);
        if (r < 0) {
                if (job.mapped)
                        suspect_map(error);
                return r;
        }
        injection->directory = true;
        (void)text_copy(injection->fs_type, sizeof injection->fs_type, "overlay");
        if (job.remapped)
                return attributes_remap(injection, /* ids= */ NULL, error);
        (void)text_copy(injection->record.id_mapping, sizeof injection->record.id_mapping,
                        !own         ? "none"
                        : job.mapped ? "idmapped"
                                     : "host");
        return 0;
}

/* upperdir=, workdir= and lowerdir=, as in fstab(5), mean the keys "upper", "work" and "lower". */
static int take_layer_option(struct request *request, char *option, bool *ret_taken, struct error *error)
{
        char *value = strchr(option, '=');

        *ret_taken = true;
        if (value != NULL && text_starts(option, "upperdir="))
                request->upper = value + 1;
        else if (value != NULL && text_starts(option, "workdir="))
                request->work = value + 1;
        else if (value != NULL && text_starts(option, "lowerdir=")) {
                char *out = value + 1;

                request->lower_count = 0;
                request->lower[request->lower_count++] = out;
                for (const char *in = value + 1; *in != '\0'; in++) {
                        if (in[0] == '\\' && in[1] != '\0')
                                *out++ = *++in;
                        else if (in[0] == ':') {
                                if (request->lower_count == REQUEST_LAYERS_MAX)
                                        return json_value_refuse(error, "options", "has more than 64 layers");
                                *out++ = '\0';
                                request->lower[request->lower_count++] = out;
                        } else
                                *out++ = *in;
                }
                *out = '\0';
        } else if (text_starts(option, "lowerdir+") || text_starts(option, "datadir+"))
                return json_value_refuse(error, "options", "layers are given as \"lower\"");
        else
                *ret_taken = false;
        return 0;
}

static int check(struct request *request, struct error *error)
{
        int r;

        request->source = "overlay";
        for (size_t i = 0; i < request->options.fs_count; i++) {
                bool taken;

                if ((r = take_layer_option(request, request->options.fs_options[i], &taken, error)) < 0)
                        return r;
                if (taken) /* emptied, not removed: the keys point into it */
                        request->options.fs_options[i][0] = '\0';
        }
        if (request->lower_count == 0)
                return json_value_refuse(error, "lower", "is missing");
        for (size_t i = 0; i < request->lower_count; i++)
                if (request->lower[i][0] != '/')
                        return json_value_refuse(error, "lower", "must be absolute paths of the node");
        if (request->upper == NULL && request->lower_count < 2)
                return json_value_refuse(
                        error, "lower",
                        "one layer without \"upper\" is not an overlay; use mount-bind with \"readOnly\"");
        if ((request->upper == NULL) != (request->work == NULL))
                return json_value_refuse(error, request->upper == NULL ? "upper" : "work",
                                         "is missing: \"upper\" and \"work\" are given together");
        if (request->upper != NULL && (request->upper[0] != '/' || request->work[0] != '/'))
                return json_value_refuse(error, "upper", "and \"work\" must be absolute paths of the node");
        return 0;
}

static int take_lower(void *object, const char *key, const json_t *value, struct error *error)
{
        struct request *request = object;
        const json_t *layer;
        size_t i;
        int r;

        if (json_is_string(value)) {
                request->lower_count = 1;
                return json_value_path(key, value, &request->lower[0], error);
        }
        if (!json_is_array(value) || json_array_size(value) == 0)
                return json_value_refuse(error, key,
                                         "must be a directory of the node or an array of them, the topmost first");
        if (json_array_size(value) > REQUEST_LAYERS_MAX)
                return json_value_refuse(error, key, "has more than 64 layers");
        json_array_foreach (value, i, layer)
                if ((r = json_value_path(key, layer, &request->lower[i], error)) < 0)
                        return r;
        request->lower_count = json_array_size(value);
        return 0;
}

static json_t *schema_of_lower(const struct key_table *table, unsigned programs)
{
        (void)table;
        (void)programs;
        return json_pack("{s:[o, {s:s, s:i, s:i, s:o}]}", "anyOf", request_schema_string("^/"), "type", "array",
                         "minItems", 1, "maxItems", REQUEST_LAYERS_MAX, "items", request_schema_string("^/"));
}

static const char *const ids[] = { "auto", "idmapped", "remap", "host", NULL };

static const struct key keys[] = {
        { REQUEST_KEY_CONTAINER(1) },
        { REQUEST_KEY_TARGET },
        { "lower", 1, 0, KEY_OWN, .take = take_lower, .schema = schema_of_lower, .spelling = SPELLED_LIST,
          .help = "the lower layers, absolute paths on the node, the topmost first" },
        { "upper", 1, 0, KEY_PATH, REQUEST_FIELD(upper),
          .help = "directory of the node for changes; without it the overlay is read-only and needs two lower layers" },
        { "work", 1, 0, KEY_PATH, REQUEST_FIELD(work),
          .help = "empty directory on the same filesystem as upper; they go together" },
        { REQUEST_KEY_READ_ONLY },
        { REQUEST_KEY_FS_OPTIONS },
        { REQUEST_KEY_FALLBACK("none") },
        { REQUEST_KEY_CACHE },
        REQUEST_KEYS_OF_MOUNT(ids),
};
REQUEST_KEY_TABLE(source_overlay_keys, keys);

static const char *const oci_types[] = { "overlay", NULL };

const struct source_kind source_overlay = {
        .word = "overlay",
        .needs = NEED(OVERLAY) | NEED(USER_NAMESPACES),
        .keys = &source_overlay_keys,
        .oci_types = oci_types,
        .foreign = true,
        .maps = true,
        .remap = REMAP_ASKED,
        .open_text = "open the layers on the node", /* openat2 */
        .make_text = SOURCE_MOUNTS_FILESYSTEM,      /* open_tree, unshare, move_mount; fsopen, fsconfig, fsmount */
        .check = check,
        .open = open_layers,
        .make = make_overlay,
        .check_recorded = check_recorded,
};
