/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/kinds/container_origin.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/node_path.h"
#include "base/syscalls.h"
#include "base/text.h"
#include "mount/detached.h"
#include "mount/options.h"
#include "mount/scratch_namespace.h"
#include "mount/superblock.h"
#include "process/sealed_child.h"

struct origin_job {
        const struct mount_record *record;
        const char *rest; /* of the path, below the mount; "" for its root */
        struct stat source;
};

/* Opens the source beneath the original's root, and checks that it is the same file. */
static int open_rest(const struct origin_job *job, int root_fd, struct error *error)
{
        cleanup_close int fd = sys_openat2(root_fd, job->rest[0] == '\0' ? "." : job->rest, O_PATH | O_NOFOLLOW, 0,
                                           RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
        struct stat st;

        if (job->rest[0] == '\0' && fd < 0 && errno == ENOTDIR) /* the mount is of a file, which is its own root */
                fd = fcntl(root_fd, F_DUPFD_CLOEXEC, 0);
        if (fd < 0 || fstat(fd, &st) < 0)
                return fail(error, errno, OPERATION_OPEN_SOURCE, job->record->origin);
        if (st.st_dev != job->source.st_dev || st.st_ino != job->source.st_ino)
                return fail_because(error, ESTALE, OPERATION_OPEN_SOURCE, job->record->origin,
                                    "the file on the node is no longer the one that was mounted");
        return fd_take(&fd);
}

/* In a sealed child on the node: mounts the device's superblock again, and clones the part of it that is the source. */
static int clone_device_in_child(void *argument, struct error *error)
{
        const struct origin_job *job = argument;
        cleanup_close int mount_fd = -EBADF;
        cleanup_close int fd = -EBADF;
        int r = 0;

        for (int read_only = 0; mount_fd < 0 && read_only < 2; read_only++) {
                cleanup_close int context_fd = superblock_open(job->record->type, error);

                if (context_fd < 0)
                        return context_fd;
                if ((r = superblock_set(context_fd, "source", job->record->origin, error)) < 0 ||
                    (read_only && (r = superblock_set(context_fd, "ro", NULL, error)) < 0))
                        return r;
                r = superblock_create(context_fd, job->record->origin, error);
                if (r == -EBUSY && !read_only)
                        continue; /* the existing superblock is read-only */
                if (r < 0)
                        return r;
                mount_fd = superblock_mount(context_fd, job->record->origin, 0, error);
                if (mount_fd < 0)
                        return mount_fd;
        }
        if (mount_fd < 0)
                return r;
        if ((r = scratch_namespace_enter(error)) < 0 ||
            (r = scratch_namespace_attach(mount_fd, "m", /* directory= */ true, error)) < 0)
                return r;
        fd = open_rest(job, mount_fd, error);
        return fd < 0 ? fd : detached_mount_clone(fd, job->record->origin, /* recursive= */ false, error);
}

int container_origin_restrict(const struct injection *injection, int mount_fd, int user_ns_fd, struct error *error)
{
        struct mount_attributes attributes = {};
        int r = mount_options_of(injection->source.fd, &attributes.set);

        if (r < 0)
                return container_fail(injection->from, -r, "fstatfs", injection->source.path, error);
        attributes.clear = (attributes.set & MOUNT_ATTR_NOATIME) != 0 ? MOUNT_ATTR__ATIME : 0;
        return detached_mount_set(mount_fd, injection->request->source, &attributes, user_ns_fd, error);
}

static int clone_bind_origin(const struct origin_job *job, struct error *error)
{
        char path[PATH_MAX];
        cleanup_close int root_fd = node_path_open(job->record->origin, path, error);
        cleanup_close int fd = -EBADF;

        if (root_fd < 0)
                return root_fd;
        fd = open_rest(job, root_fd, error);
        return fd < 0 ? fd : detached_mount_clone(fd, job->record->origin, /* recursive= */ false, error);
}

/* Whether what a mount was made of is there still: a directory of the node, or a disk. A volume or an image is more than that. */
static bool has_origin(const struct mount_record *record)
{
        struct stat st;

        return strcmp(record->type, MOUNT_RECORD_CLONE) == 0 ||
               (record->origin[0] == '/' && stat(record->origin, &st) == 0 && S_ISBLK(st.st_mode));
}

int container_origin_clone(struct injection *injection, const struct idmap *mapping, struct error *error)
{
        static struct mount_record record;
        struct origin_job job = { .record = &record };
        const char *path = injection->source.path;
        cleanup_close int user_ns_fd = idmap_open(mapping, error);
        cleanup_close int fd = -EBADF;
        size_t length;
        int r;

        if (user_ns_fd < 0)
                return user_ns_fd;
        if (injection->request->recursive || injection->session->state.dir_fd < 0 ||
            mount_record_find(&injection->session->state, injection->from, injection->session->boot_id,
                              &injection->source.mount, /* by_root= */ false, /* except= */ NULL, &record, error) < 0 ||
            record.from_pid != 0 || !has_origin(&record))
                return fail_because(error, EOPNOTSUPP, OPERATION_MAP_OWNERS, injection->request->source,
                                    "the source is id-mapped already, and mapping it anew needs Linux 6.15");
        length = strlen(record.mount_point);
        if (!text_lies_in(path, record.mount_point))
                return container_fail(injection->from, ESTALE, OPERATION_OPEN_SOURCE, path, error);
        job.rest = path + length + (path[length] == '/' ? 1 : 0);
        if (fstat(injection->source.fd, &job.source) < 0)
                return container_fail(injection->from, errno, "fstat", path, error);
        fd = strcmp(record.type, MOUNT_RECORD_CLONE) == 0
                     ? clone_bind_origin(&job, error)
                     : sealed_child_run(clone_device_in_child, &job, NULL, 0, error);
        if (fd < 0)
                return fd;
        r = container_origin_restrict(injection, fd, user_ns_fd, error); /* it is a clone of the node's mount */
        return r < 0 ? r : fd_take(&fd);
}
