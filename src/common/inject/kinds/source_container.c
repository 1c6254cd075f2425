/* SPDX-License-Identifier: Apache-2.0 */
/* source_container.c - a file or directory of another container as the source of a mount, its owners mapped. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/fd.h"
#include "base/hash.h"
#include "base/text.h"
#include "inject/attributes.h"
#include "inject/injection.h"
#include "inject/kinds/container_origin.h"
#include "inject/kinds/container_owners.h"
#include "inject/request/source.h"
#include "mount/authority.h"
#include "mount/detached.h"
#include "mount/scratch_namespace.h"
#include "mount/tree_roots.h"
#include "process/worker.h"

static int fail_type(const struct injection *injection, mode_t mode, struct error *error)
{
        (void)fail_because(error, EINVAL, OPERATION_OPEN_SOURCE, injection->request->source,
                           S_ISBLK(mode) || S_ISCHR(mode)
                                   ? "a device file; mount-block with \"raw\" gives a device to a container"
                                   : "neither a directory nor a file");
        return error_where(error, injection->from->name);
}

/* root of the node may open, or look at, everything but this (docs/KERNEL.md#fuse) */
static int blame_fuse(const struct injection *injection, struct error *error)
{
        (void)fail_because(error, EACCES, OPERATION_OPEN_SOURCE, injection->request->source,
                           "it is on a FUSE filesystem of this container's own, which only its processes may use");
        return error_where(error, injection->from->name);
}

/* Looks the source up beneath its container's root; with mkdirSource it may be missing. */
static int find_source(struct injection *injection, struct error *error)
{
        const struct request *request = injection->request;
        struct target *source = &injection->source;
        int r = target_look(injection->from, request->source, source, error);

        if (r == -EPERM) {
                (void)text_copy(error->operation, sizeof error->operation, OPERATION_OPEN_SOURCE);
                (void)text_copy(error->reason, sizeof error->reason,
                                "the source is in a kernel filesystem (proc, sysfs, cgroup, ...)");
        }
        if (r == -EACCES)
                return blame_fuse(injection, error);
        if (r < 0 || source->missing == 0)
                return r;
        if (!request->mkdir_source)
                return container_fail(injection->from, ENOENT, OPERATION_OPEN_SOURCE, request->source, error);
        return 0;
}

/* Whoever removes what this mount shows must find the users of a directory in it, too. */
static void add_uses_of_source(struct injection *injection)
{
        static struct mount_record record;
        struct error ignored;

        if (injection->session->state.dir_fd >= 0 &&
            mount_record_find(&injection->session->state, injection->from, injection->session->boot_id,
                              &injection->source.mount, /* by_root= */ false, /* except= */ NULL, &record,
                              &ignored) == 0)
                use_keys_add_all(injection->record.uses, record.uses);
}

static int open_source(struct injection *injection, struct error *error)
{
        const struct request *request = injection->request;
        struct stat st = { .st_mode = S_IFDIR };
        char identity[64];
        int r = find_source(injection, error);

        if (r < 0)
                return r;
        if (injection->source.fd >= 0 && fstat(injection->source.fd, &st) < 0)
                return errno == EACCES ? blame_fuse(injection, error)
                                       : container_fail(injection->from, errno, "fstat", request->source, error);
        if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode) && !S_ISSOCK(st.st_mode) && !S_ISFIFO(st.st_mode))
                return fail_type(injection, st.st_mode, error);
        injection->directory = S_ISDIR(st.st_mode);
        add_uses_of_source(injection);
        (void)text_copy(injection->record.origin, sizeof injection->record.origin, injection->source.path);
        (void)snprintf(identity, sizeof identity, "%llu %llu", (unsigned long long)injection->from->mnt_ns.inode,
                       (unsigned long long)injection->from->mnt_ns.id);
        injection->source_digest = HASH_SEED;
        injection_digest_text(injection, identity);
        return 0;
}

/* Two of the ways to make an id-mapped clone (container_origin_clone() is another); each returns a descriptor or negative errno. */

static int clone_and_map(struct injection *injection, const struct idmap *mapping, struct error *error)
{
        return detached_mount_clone_mapped(injection->source.fd, injection->from, injection->request->source,
                                           /* recursive= */ false, mapping, error);
}

/* Since Linux 6.15 a clone of an id-mapped mount can have another mapping (docs/KERNEL.md#id-mapped-mounts). */
static int clone_mapped(struct injection *injection, const struct idmap *mapping, struct error *error)
{
        cleanup_close int user_ns_fd = idmap_open(mapping, error);

        return user_ns_fd < 0
                       ? user_ns_fd
                       : detached_mount_clone_inside(injection->source.fd, injection->from, injection->request->source,
                                                     /* recursive= */ false, user_ns_fd, error);
}

/* With the mounts below the source: a clone of them all is mapped where its container cannot change it any more. */
struct tree_job {
        const struct injection *injection;
        int theirs_fd; /* an unmapped clone; the worker may close it */
        int user_ns_fd;
        bool anew; /* with a mapping also where the source has one */
        bool strict;
};

static int set_private(int mount_fd, const char *source, struct error *error)
{
        const struct mount_attributes private = { .propagation = MS_PRIVATE, .recursive = true };

        return detached_mount_set(mount_fd, source, &private, /* user_ns_fd= */ -1, error);
}

static int map_attached(const struct tree_job *job, struct error *error)
{
        const char *source = job->injection->request->source;
        cleanup_close int fd = -EBADF;
        int r;

        if (job->anew)
                return detached_mount_clone_anew(job->theirs_fd, source, /* recursive= */ true, job->user_ns_fd, error);
        fd = detached_mount_clone(job->theirs_fd, source, /* recursive= */ true, error);
        r = fd < 0 ? fd : detached_mount_map(fd, source, /* recursive= */ true, job->user_ns_fd, error);
        return r < 0 ? r : fd_take(&fd);
}

/*
 * That both trees have no mounts but those that were looked at. total: in the namespace before; before Linux 6.8 nobody
 * tells it, but then nothing may be left of them: a mount that has another on it does not let itself be unmounted.
 */
static int check_all_seen(struct tree_job *job, int total, size_t seen, int *ours_fd, struct error *error)
{
        bool all = total == (int)seen;

        if (total == -ENOSYS) {
                fd_close(&job->theirs_fd);
                fd_close(ours_fd);
                all = scratch_namespace_unmount("theirs") == 0 && scratch_namespace_unmount("ours") == 0;
        } else if (total < 0)
                return fail(error, -total, "listmount", "a private namespace");
        return all ? 0
                   : fail_because(error, EXDEV, "look at", "the mounts below the source",
                                  "one of them is on a directory that was moved out of the mount that it was in%s",
                                  total < 0 ? ", or is locked, which needs Linux 6.8" : "");
}

/* In a worker. Returns a clone that is as what was looked at, which is taken apart. */
static int map_tree_apart(void *argument, struct error *error)
{
        struct tree_job *job = argument;
        const char *source = job->injection->request->source;
        const bool directory = job->injection->directory;
        cleanup_tree_roots struct tree_roots theirs = {};
        cleanup_tree_roots struct tree_roots ours = {};
        cleanup_close int ours_fd = -EBADF;
        cleanup_close int fd = -EBADF;
        int total;
        int r = scratch_namespace_enter(error);

        if (r < 0 || (r = scratch_namespace_attach(job->theirs_fd, "theirs", directory, error)) < 0)
                return r;
        ours_fd = map_attached(job, error);
        if (ours_fd < 0 || (r = scratch_namespace_attach(ours_fd, "ours", directory, error)) < 0)
                return ours_fd < 0 ? ours_fd : r;
        fd = detached_mount_clone(ours_fd, source, /* recursive= */ true, error);
        if (fd < 0)
                return fd;
        /* else what is unmounted here would be in the container, too */
        if ((r = set_private(job->theirs_fd, source, error)) < 0 || (r = set_private(ours_fd, source, error)) < 0)
                return r;
        total = scratch_namespace_count();
        if ((r = tree_roots_read(job->theirs_fd, &theirs, error)) < 0 ||
            (r = tree_roots_read(ours_fd, &ours, error)) < 0 ||
            (r = check_all_seen(job, total, theirs.count + ours.count, &ours_fd, error)) < 0 ||
            (r = container_owners_check_tree(job->injection, &theirs, &ours, job->strict, error)) < 0)
                return r;
        return fd_take(&fd);
}

static int clone_tree(struct injection *injection, const struct idmap *mapping, bool anew, bool strict,
                      struct error *error)
{
        const struct request *request = injection->request;
        cleanup_close int user_ns_fd = idmap_open(mapping, error);
        struct tree_job job = {
                .injection = injection, .theirs_fd = -EBADF, .user_ns_fd = user_ns_fd, .anew = anew, .strict = strict
        };
        int r = user_ns_fd;

        if (r >= 0) {
                job.theirs_fd = detached_mount_clone_inside(injection->source.fd, injection->from, request->source,
                                                            /* recursive= */ true, /* user_ns_fd= */ -1, error);
                r = job.theirs_fd;
        }
        /* before it is looked at; with another propagation later mounts come unmapped anyway */
        if (r >= 0 && request->options.propagation == MS_PRIVATE)
                r = set_private(job.theirs_fd, request->source, error);
        if (r >= 0)
                r = worker_run_apart(map_tree_apart, NULL, &job, error);
        fd_close(&job.theirs_fd);
        return r;
}

/* Tries one way with one kind of ids. 0 and mount_fd; -EXDEV if the owners are wrong; or the error. */
static int try_way(struct injection *injection,
                   int (*way)(struct injection *injection, const struct idmap *mapping, struct error *error),
                   enum owner_ids ids, struct error *error)
{
        const bool tree = injection->request->recursive && way != container_origin_clone;
        const bool strict = way != clone_and_map || ids != FROM_NODE;
        const struct idmap *mapping = NULL;
        int r = container_owners_map(injection, ids, &mapping, error);
        cleanup_close int fd = r < 0  ? r
                               : tree ? clone_tree(injection, mapping, way == clone_mapped, strict, error)
                                      : way(injection, mapping, error);

        r = fd < 0 ? fd : tree ? 0 : container_owners_check(injection, fd, error);
        if (r == 0)
                injection->mount_fd = fd_take(&fd);
        return r;
}

/*
 * The ids on a disk are the node's. Those inside are only in a superblock that the container's user namespace owns: a tmpfs, of
 * what can be id-mapped there (one of the node's is one, too). Owners that are changed while they are compared show no disk's.
 */
static bool may_have_ids_inside(const struct injection *injection)
{
        struct statfs fs;

        return fstatfs(injection->source.fd, &fs) == 0 && fs.f_type == TMPFS_MAGIC;
}

static int clone_with_owners(struct injection *injection, struct error *error)
{
        int r = try_way(injection, clone_and_map, FROM_NODE, error);

        if (r == -EXDEV && may_have_ids_inside(injection))
                r = try_way(injection, clone_and_map, FROM_INSIDE, error);
        if (r == -EPERM && strcmp(error->operation, OPERATION_MOUNT_SETATTR) == 0) /* the source is id-mapped already */
                r = try_way(injection, clone_mapped, FROM_MOUNT, error);
        if (r == -ENOSYS && injection->request->recursive) { /* a mount below it is id-mapped */
                r = try_way(injection, clone_mapped, FROM_NODE, error);
                if (r == -EXDEV && may_have_ids_inside(injection))
                        r = try_way(injection, clone_mapped, FROM_INSIDE, error);
        }
        if (r == -ENOSYS)
                r = try_way(injection, container_origin_clone, FROM_INSIDE, error);
        if (r == -EINVAL && strcmp(error->operation, OPERATION_MOUNT_SETATTR) == 0)
                (void)snprintf(error->reason, sizeof error->reason,
                               "its filesystem, or one below it, cannot be id-mapped by this kernel");
        return r;
}

/*
 * In a worker, with the clone where its container, which could take the mount away, cannot change what mountinfo says.
 * Returns a clone of it: this one goes with the namespace.
 */
static int refuse_9p_apart(void *argument, struct error *error)
{
        const struct injection *injection = argument;
        const char *ignored; /* where it is: the descriptor leads there */
        int r = scratch_namespace_attach_first(injection->mount_fd, injection->directory, &ignored, error);

        if (r < 0)
                return r;
        if (authority_is_mounted_as("9p", injection->mount_fd))
                return injection_fail_ids(injection, "\"remap\" is not for a 9p filesystem of another container",
                                          error);
        return detached_mount_clone(injection->mount_fd, injection->request->source, /* recursive= */ false, error);
}

/*
 * remap-daemon serves it, by the ids that the source's container has on the node. Nothing is mounted in the clone, now or
 * later: to a detached mount no mount propagates (docs/KERNEL.md#targets-in-a-container).
 */
static int serve(struct injection *injection, struct error *error)
{
        const struct id_maps *ids;
        int r = container_owners_of_source(injection, &ids, error);

        if (r < 0)
                return r;
        injection->mount_fd = detached_mount_clone_inside(injection->source.fd, injection->from,
                                                          injection->request->source, /* recursive= */ false,
                                                          /* user_ns_fd= */ -1, error);
        if (injection->mount_fd < 0)
                return injection->mount_fd;
        /* of what is served, as attributes_remap() also looks at it, whatever is at the path by now */
        r = worker_run_apart(refuse_9p_apart, NULL, injection, error);
        if (r < 0)
                return r;
        fd_close(&injection->mount_fd);
        injection->mount_fd = r;
        r = attributes_remap(injection, ids, error);
        return r < 0 ? r : container_origin_restrict(injection, injection->mount_fd, /* user_ns_fd= */ -1, error);
}

/* Remap-daemon then does what the request, or the policy, leaves to it. */
static bool is_of_owners(const struct error *error)
{
        return strcmp(error->operation, OPERATION_MOUNT_SETATTR) == 0 ||
               strcmp(error->operation, OPERATION_MAP_OWNERS) == 0;
}

/* Sets the word of the way that was taken. */
static int map_owners(struct injection *injection, const char **ret_word, struct error *error)
{
        int r;

        *ret_word = "idmapped";
        if (injection->request->ids != IDS_REMAP) {
                r = clone_with_owners(injection, error);
                if (r == 0 || !is_of_owners(error))
                        return r;
                if (!injection_falls_back(injection)) {
                        attributes_blame_source(injection, injection->source.fd, error);
                        return r;
                }
        }
        *ret_word = "remap";
        return serve(injection, error);
}

static int make_clone(struct injection *injection, bool owned, struct error *error)
{
        const struct request *request = injection->request;
        bool same = container_same_user_ns(injection->from, injection->container) ||
                    (request->ids != IDS_HOST && container_owners_same(injection));
        const char *word = same ? "none" : "host";
        int r = container_alive(injection->from, error);

        (void)owned;                                   /* never true: not ownable */
        if (r == 0 && injection->source.missing > 0) { /* created as its container's root would */
                target_release(&injection->source);
                r = target_look(injection->from, request->source, &injection->source, error);
                if (r == 0)
                        r = target_make(injection->from, &injection->source, /* directory= */ true, error);
        }
        if (r < 0)
                return r;
        if (same || request->ids == IDS_HOST) {
                injection->mount_fd = detached_mount_clone_inside(injection->source.fd, injection->from,
                                                                  request->source, request->recursive,
                                                                  /* user_ns_fd= */ -1, error);
                r = injection->mount_fd < 0 ? injection->mount_fd : 0;
        } else
                r = map_owners(injection, &word, error);
        fd_close(&injection->source.fd); /* open, it would make umount in that container fail with EBUSY */
        if (r == 0)
                (void)text_copy(injection->record.id_mapping, sizeof injection->record.id_mapping, word);
        return r;
}

/* Removes the directories created for the source, if they are still empty. */
static int unmake_source(struct injection *injection, struct error *error)
{
        const struct target *source = &injection->source;
        unsigned left;

        if (injection->from == NULL || source->made == 0)
                return 0;
        return target_unmake(injection->from, source->path, source->missing - source->made, source->made, source, &left,
                             error);
}

static int check_policy(const struct request *request, const struct policy *policy, struct error *error)
{
        const char *id = request->from.user == 0 ? request->from.id : NULL; /* the list is of root's containers */

        if (id != NULL && (policy_lists(policy, "containers", id) || policy_lists(policy, "containers", "*")))
                return 0;
        return policy_forbid(policy, id != NULL ? id : "a container not named by its id", "containers", error);
}

#define HINT_REMAP                                                                                                     \
        "\"ids\": \"remap\" remaps owners, \"fallback\": \"remap\" in place of \"ids\" does so only where that "       \
        "is needed, \"ids\": \"host\" mounts without mapping: foreign owners then show as 65534"

static const struct hint hints[] = {
        { OPERATION_MAP_OWNERS, 0, HINT_REMAP },
        { OPERATION_MOUNT_SETATTR, EINVAL, HINT_REMAP },
        { OPERATION_OPEN_SOURCE, ENOENT, "\"mkdirSource\": true makes a missing directory in the source's container" },
        {},
};

const struct source_kind source_container = {
        .word = "container-to-container",
        .needs = NEED(USER_NAMESPACES),
        .keys = &source_container_keys, /* in source_container_keys.c */
        .clones = true,
        .of_container = true,
        .foreign = true,
        .maps = true,
        .remap = REMAP_ASKED,
        .open_text = "open the source beneath the other container's root", /* openat2 */
        .make_text = SOURCE_CLONES,                                        /* mkdirat; open_tree; unshare, move_mount */
        .hints = hints,
        .check_policy = check_policy,
        .open = open_source,
        .make = make_clone,
        .undo = unmake_source,
};
