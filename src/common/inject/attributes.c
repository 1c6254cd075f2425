/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/attributes.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/text.h"
#include "daemon/remap.h"
#include "mount/authority.h"
#include "mount/detached.h"

/* Whether all attributes are locked: with "locked", or because a policy or its kind says that it may only be read. */
static bool locks_all(const struct injection *injection)
{
        const struct request *request = injection->request;

        return request->locked ||
               ((request->held || injection->kind->shared) && request->read_only && injection->container->own_user_ns);
}

/* Whether nosuid and nodev are locked even without "locked". */
static bool locks_some(const struct injection *injection)
{
        return injection->container->own_user_ns && (injection->kind->foreign || injection->request->held);
}

/* The kernel moves no unbindable mount to a shared target, and clones none: it becomes that in its place. */
static uint64_t propagation_before(const struct injection *injection)
{
        return injection->attributes.propagation == MS_UNBINDABLE ? MS_PRIVATE : injection->attributes.propagation;
}

int attributes_set(struct injection *injection, bool mapped, struct error *error)
{
        const struct request *request = injection->request;
        struct mount_attributes attributes = { .set = injection->attributes.set,
                                               .clear = injection->attributes.clear,
                                               .propagation = propagation_before(injection),
                                               .recursive = injection->attributes.recursive,
                                               .apart = injection->container->own_user_ns };
        int r;

        /* locking locks every attribute that is set: those that the container may change are set after it */
        if (locks_some(injection) && !locks_all(injection))
                attributes.set &= ~(uint64_t)(MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOEXEC);
        r = detached_mount_set(injection->mount_fd, request->source, &attributes,
                               mapped ? injection->container->user_ns_fd : -1, error);
        if (r == -EPERM && injection->from != NULL)
                (void)snprintf(error->reason, sizeof error->reason,
                               "attributes of the source's mount, its access times (atime) perhaps, are locked in "
                               "container %s",
                               injection->from->name);
        return r;
}

int attributes_check_owner(const struct injection *injection, struct error *error)
{
        struct stat st;

        if (fstat(injection->mount_fd, &st) < 0)
                return fail(error, errno, "fstat", injection->request->source);
        if (st.st_uid == 65534 || st.st_gid == 65534)
                return injection_fail_ids(
                        injection, "on a superblock that the container's user namespace owns its owners show as 65534",
                        error);
        return 0;
}

int attributes_check_served(const struct injection *injection, int fd, struct error *error)
{
        int known = authority_is_known(fd);

        if (known < 0)
                return fail(error, -known, "fstatfs", injection->request->source);
        if (known > 0)
                return 0;
        return injection_fail_ids(
                injection,
                injection->kind->of_container
                        ? "remap-daemon does not serve this type of filesystem of another container"
                        : "remap-daemon does not serve this type of filesystem unless \"ids\" is \"remap\"",
                error);
}

/* Pipes and sockets of a FUSE filesystem connect only who uses that: their other ends are elsewhere. */
static bool is_for_files(const struct stat *st)
{
        return S_ISDIR(st->st_mode) || S_ISREG(st->st_mode);
}

void attributes_blame_source(const struct injection *injection, int fd, struct error *error)
{
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0 ||
            (is_for_files(&st) && !(injection->kind->of_container && authority_is_known(fd) == 0)))
                return;
        (void)text_copy(error->operation, sizeof error->operation, OPERATION_MAP_ANYHOW);
}

static int check_remap(const struct injection *injection, struct error *error)
{
        struct stat st;

        if (fstat(injection->mount_fd, &st) < 0)
                return fail(error, errno, "fstat", injection->request->source);
        if (!is_for_files(&st))
                return injection_fail_ids(injection, "\"remap\" is for directories and regular files", error);
        /* of the node root may ask for any */
        return injection->request->ids == IDS_REMAP && !injection->kind->of_container
                       ? 0
                       : attributes_check_served(injection, injection->mount_fd, error);
}

/*
 * What holds of the mount that a clone is of holds of the daemon's, unless an option says otherwise; "ro" it has behind
 * it.
 */
static int keep_of_source(struct injection *injection, struct error *error)
{
        uint64_t own;
        int r;

        if (!injection->kind->clones)
                return 0;
        if ((r = mount_options_of(injection->mount_fd, &own)) < 0)
                return fail(error, -r, "fstatfs", injection->request->source);
        injection->attributes.set |= own & ~injection->attributes.clear & REMAP_KEPT_ATTRIBUTES;
        return 0;
}

int attributes_remap(struct injection *injection, const struct id_maps *ids, struct error *error)
{
        const struct request *request = injection->request;
        struct mount_record *record = &injection->record;
        /* the daemon's mount is restricted like the one that the container sees */
        const struct mount_attributes behind = {
                .set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
                       (injection->attributes.set & (MOUNT_ATTR_RDONLY | MOUNT_ATTR__ATIME | MOUNT_ATTR_NODIRATIME)),
                .clear = (injection->attributes.set & MOUNT_ATTR__ATIME) != 0 ? MOUNT_ATTR__ATIME : 0,
                .propagation = MS_PRIVATE,
                .recursive = request->recursive,
        };
        const struct remap_source source = { .mount_fd = injection->mount_fd,
                                             .name = request->source,
                                             .cache = request->cache,
                                             .ids = ids,
                                             .state = &injection->session->state };
        int fd;
        int r = check_remap(injection, error);

        if (r == 0)
                r = keep_of_source(injection, error);
        if (r == 0)
                r = detached_mount_set(injection->mount_fd, request->source, &behind, /* user_ns_fd= */ -1, error);
        if (r < 0)
                return r;
        fd = remap_mount(&source, injection->container, &record->remap_key, &record->remap_pid, error);
        if (fd < 0)
                return fd;
        fd_close(&injection->mount_fd); /* the daemon has its own descriptor */
        injection->mount_fd = fd;
        (void)text_copy(record->id_mapping, sizeof record->id_mapping, "remap");
        return 0;
}

void attributes_say_unmapped(struct error *error)
{
        if (error->reason[0] == '\0')
                (void)snprintf(error->reason, sizeof error->reason, "its owners cannot be mapped for the container: %s",
                               error_text(error->errnum));
}

bool attributes_is_refusal(int r)
{
        return r == -EPERM || r == -EINVAL || r == -EOPNOTSUPP;
}

int attributes_map(struct injection *injection, struct error *error)
{
        const bool own = injection->container->own_user_ns;
        const enum request_ids ids = own ? injection->request->ids : IDS_HOST;
        const char *word = own ? "host" : "none";
        int r;

        injection->mapped = true;
        if (ids == IDS_IDMAPPED || ids == IDS_AUTO) {
                word = "idmapped";
                r = detached_mount_map(injection->mount_fd, injection->request->source, /* recursive= */ false,
                                       injection->container->user_ns_fd, error);
                if (attributes_is_refusal(r) && injection_falls_back(injection))
                        return attributes_remap(injection, /* ids= */ NULL, error);
                if (r < 0) {
                        attributes_blame_source(injection, injection->mount_fd, error);
                        attributes_say_unmapped(error);
                        return r;
                }
        } else if (ids != IDS_HOST)
                return attributes_remap(injection, /* ids= */ NULL, error);
        (void)text_copy(injection->record.id_mapping, sizeof injection->record.id_mapping, word);
        return 0;
}

int attributes_lock_here(struct injection *injection, int mount_fd, bool scratch, struct error *error)
{
        cleanup_close int fd = mount_fd;
        int r;

        if (!locks_some(injection) && !locks_all(injection))
                return fd_take(&fd);
        injection->mount_fd = fd;
        r = attributes_set(injection, /* mapped= */ false, error);
        injection->mount_fd = -EBADF;
        if (r == 0)
                r = detached_mount_lock_here(fd, scratch, error);
        injection->locked = r >= 0;
        return r;
}

/* The attributes that are locked: done by attributes_lock_here(), or here. */
static int lock(struct injection *injection, struct error *error)
{
        int fd;

        if (injection->locked)
                return 0;
        fd = detached_mount_lock(injection->mount_fd, injection->directory, injection->request->recursive, error);
        if (fd < 0)
                return fd;
        fd_close(&injection->mount_fd);
        injection->mount_fd = fd;
        return 0;
}

int attributes_lock(struct injection *injection, struct error *error)
{
        const struct request *request = injection->request;
        struct mount_attributes rest;
        int r;

        if (!injection->container->own_user_ns && !request->locked)
                return 0; /* its root is the node's root: a lock has no effect */
        if (!injection->container->own_user_ns)
                return fail_because(error, EINVAL, OPERATION_LOCK_ATTRIBUTES, request->target,
                                    "the container has no user namespace of its own, so its root could undo any lock");
        if ((r = lock(injection, error)) < 0 || locks_all(injection))
                return r;
        rest = (struct mount_attributes){
                .set = injection->attributes.set & (MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOEXEC),
                .propagation = propagation_before(injection),
                .recursive = request->recursive,
        };
        return detached_mount_set(injection->mount_fd, request->source, &rest, -1, error);
}
