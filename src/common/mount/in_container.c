/* SPDX-License-Identifier: Apache-2.0 */
#include "mount/in_container.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/syscalls.h"
#include "base/text.h"
#include "mount/mountinfo.h"
#include "mount/options.h"
#include "process/namespace.h"
#include "process/sealed_child.h"

/* How many mounts that the container put over ours are unmounted with it. */
#define COVERS_MAX 16

int in_container_place(int mount_fd, const struct container *container, const struct target *target, bool beneath,
                       const struct mount_attributes *attributes, struct error *error)
{
        unsigned flags = MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH | (beneath ? MOVE_MOUNT_BENEATH : 0);
        struct mount_attr again = { .propagation = attributes->propagation };
        /* a tree that a shared target made shared stays so: only then does its removal reach the container's nested namespaces */
        const bool stays = attributes->recursive && container->own_user_ns && again.propagation == MS_PRIVATE;
        int r = namespace_enter_mounts(container->mnt_ns_fd, container->name, error);

        if (r < 0)
                return r;
        /* the target's descriptor was opened beneath the container's root and stays what it is in here */
        if (move_mount(mount_fd, "", target->fd, "", flags) < 0)
                return container_fail(container, errno, OPERATION_MOVE_MOUNT, target->path, error);
        /* moving beneath a shared mount made it shared, and locking made it private: set the propagation again */
        if (again.propagation != 0 && !stays &&
            mount_setattr(mount_fd, "", AT_EMPTY_PATH | (attributes->recursive ? AT_RECURSIVE : 0), &again,
                          sizeof again) < 0)
                return container_fail(container, errno, OPERATION_MOUNT_SETATTR, target->path, error);
        return 0;
}

/* The kernel looks at flags before it looks at descriptors. */
int in_container_knows_beneath(void)
{
        const unsigned flags = MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH | MOVE_MOUNT_BENEATH;

        if (move_mount(-EBADF, "", -EBADF, "", flags) < 0 && errno != EBADF)
                return errno == EINVAL ? -ENOSYS : -errno;
        return 0;
}

const char *placement_word(enum placement placement)
{
        static const char *const words[] = { "present", "covered", "gone" };

        return words[placement];
}

/*
 * Whether what a process's mountinfo lists is all of its mount namespace: it leaves out what its root does not reach.
 */
static bool reaches_all(const struct container *container)
{
        char root[2];

        return readlinkat(container->proc_fd, "root", root, sizeof root) == 1 && root[0] == '/';
}

/* What is looked for in a table: one mount, or any of a part of a filesystem. */
struct sought {
        const struct mount_identity *identity; /* NULL: not by that */
        uint64_t device;
        const char *root;
};

/*
 * Ids are used again, and so are the numbers of filesystems without a device: the filesystem must be the same, also by its
 * type where that is known. Only a FUSE filesystem of a user namespace tells no inode (mount_see()). Some filesystems tell
 * another device of their files than tables show (docs/KERNEL.md#asking-about-a-mount-and-removing-it).
 */
static bool is_on(const struct mountinfo *line, const struct mount_identity *identity)
{
        static const char *const have_others[] = { "btrfs", "ceph", "overlay", NULL };

        if (!identity->unique && identity->inode == 0 && !text_starts(line->type, "fuse"))
                return false;
        return line->device == identity->device || text_among(line->type, have_others);
}

static bool is_sought(const struct mountinfo *line, const struct sought *sought)
{
        const struct mount_identity *identity = sought->identity;

        if (identity == NULL)
                return line->device == sought->device && text_lies_in(line->root, sought->root);
        return line->id == identity->short_id && is_on(line, identity);
}

/* -EFBIG: see MOUNTINFO_MAX. */
static int look_in_table(const struct container *container, const struct sought *sought)
{
        cleanup_mount_table struct mountinfo table = {};
        int r = mountinfo_open(&table, container->proc_fd);

        while (r == 0 && mountinfo_next(&table)) {
                if (table.bytes > MOUNTINFO_MAX)
                        return -EFBIG;
                if (is_sought(&table, sought))
                        return 1;
        }
        return r == 0 && table.failed ? -EIO : r;
}

/* -EXDEV: the process has changed its root, and no other of the namespace has not. */
static int ask_mount_table(const struct container *container, const struct sought *sought)
{
        cleanup_container struct container other = CONTAINER_NONE;
        struct error ignored;
        int r = look_in_table(container, sought);

        if (r != 0 || reaches_all(container))
                return r;
        if (container_pin_namespace(&container->mnt_ns, &other, &ignored) < 0 || !reaches_all(&other))
                return -EXDEV;
        return look_in_table(&other, sought);
}

int in_container_has(const struct container *container, const struct mount_identity *identity, bool *ret_has,
                     struct error *error)
{
        int there = container->mnt_ns.id != 0 ? mount_identity_is_in(identity, container->mnt_ns.id) : -ENOSYS;

        if (there < 0)
                there = ask_mount_table(container, &(struct sought){ .identity = identity });
        if (there < 0)
                return container_fail(container, -there, there == -EFBIG ? "read mountinfo" : "statmount",
                                      container->name, error);
        *ret_has = there > 0;
        return 0;
}

int in_container_has_part(const struct container *container, uint64_t device, const char *root)
{
        return ask_mount_table(container, &(struct sought){ .device = device, .root = root });
}

int in_container_find_statfs(const struct container *container, const char *path, const struct mount_identity *identity,
                             enum placement *ret_placement, struct statfs *ret_fs, struct error *error)
{
        struct mount_seen seen = {};
        int r = target_see(container, path, &seen, identity, ret_fs, error);
        bool there = false;

        if (mount_seen_is(&seen, identity)) {
                *ret_placement = PLACEMENT_PRESENT;
                return r;
        }
        if ((r = in_container_has(container, identity, &there, error)) < 0)
                return r;
        *ret_placement = there ? PLACEMENT_COVERED : PLACEMENT_GONE;
        return 0;
}

int in_container_find(const struct container *container, const char *path, const struct mount_identity *identity,
                      enum placement *ret_placement, struct error *error)
{
        return in_container_find_statfs(container, path, identity, ret_placement, /* ret_fs= */ NULL, error);
}

int in_container_options(const struct container *container, const char *path, const struct mount_identity *identity,
                         char *ret_text, size_t size, struct error *error)
{
        struct mount_seen seen = {};
        struct statfs fs = {};
        int r = target_see(container, path, &seen, identity, &fs, error);

        if (r < 0)
                return r;
        if (!mount_seen_is(&seen, identity)) {
                (void)fail_because(error, ESTALE, OPERATION_LOOK_AGAIN, path,
                                   "the target was moved, replaced or covered while the mount was placed");
                return error_where(error, container->name);
        }
        mount_options_text((unsigned long)fs.f_flags, ret_text, size);
        return 0;
}

struct ask_job {
        const struct container *container;
        const char *path;
        int fd;
};

static int ask_in_child(void *argument, struct error *error)
{
        const struct ask_job *job = argument;
        int r = namespace_become_root_of(job->container->user_ns_fd, job->container->name, error);
        struct statfs fs;

        if (r < 0)
                return r;
        return fstatfs(job->fd, &fs) < 0 ? container_fail(job->container, errno, "fstatfs", job->path, error) : job->fd;
}

int in_container_ask(const struct container *container, int fd, const char *path, struct error *error)
{
        struct ask_job job = { .container = container, .path = path, .fd = fd };
        const int keep[] = { fd, container->user_ns_fd };
        int copy_fd = sealed_child_run(ask_in_child, &job, keep, sizeof keep / sizeof keep[0], error);

        if (copy_fd < 0)
                return copy_fd;
        fd_close(&copy_fd);
        return 0;
}

int in_container_count_below(const struct container *container, const char *path, unsigned *ret_count,
                             struct error *error)
{
        cleanup_mount_table struct mountinfo table = {};
        char seen_path[2 * PATH_MAX]; /* as the process sees it, which may not have entered its root directory yet */
        unsigned count = 0;
        size_t length = (size_t)snprintf(seen_path, sizeof seen_path, "%s%s", container->root_prefix ?: "", path);
        int r = mountinfo_open(&table, container->proc_fd);

        if (r < 0)
                return container_fail(container, -r, "read", "mountinfo", error);
        while (mountinfo_next(&table))
                count += strncmp(table.mount_point, seen_path, length) == 0 && table.mount_point[length] == '/';
        if (table.failed)
                return container_fail(container, EIO, "read", "mountinfo", error);
        *ret_count = count;
        return 0;
}

/*
 * Without a user namespace of the container's own a shared mount is a peer of its source's: what goes with it when it is
 * detached would be unmounted there, too (docs/KERNEL.md#targets-in-a-container). A slave still receives, and sends nothing.
 */
static int send_nothing(const struct container *container, int dirfd, const char *name, unsigned flags)
{
        struct mount_attr slave = { .propagation = MS_SLAVE };

        if (container->own_user_ns)
                return 0;
        return mount_setattr(dirfd, name, flags | AT_RECURSIVE, &slave, sizeof slave) < 0 ? -errno : 0;
}

int in_container_take_back(int mount_fd, const struct container *container, struct error *error)
{
        cleanup_close int fds_fd = open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
        char name[16];
        int r;

        if (fds_fd < 0)
                return fail(error, errno, "open", "/proc/self/fd");
        if ((r = namespace_enter_mounts(container->mnt_ns_fd, container->name, error)) < 0)
                return r;
        if (fchdir(fds_fd) < 0) /* the node's procfs, seen from inside */
                return fail(error, errno, "fchdir", "/proc/self/fd");
        (void)send_nothing(container, mount_fd, "", AT_EMPTY_PATH); /* EINVAL: it is in no mount tree */
        (void)snprintf(name, sizeof name, "%d", mount_fd);
        for (int i = 0; i < COVERS_MAX; i++) {
                /* until our mount is in no mount tree */
                if (umount2(name, MNT_DETACH) < 0)
                        return errno == EINVAL
                                       ? 0
                                       : container_fail(container, errno, OPERATION_UMOUNT2, "what was placed", error);
        }
        return container_fail(container, EBUSY, OPERATION_UMOUNT2, "what was placed", error);
}

/* Where the container's tree has the mount on top; ret_path holds PATH_MAX bytes. Returns 0 or negative errno. */
static int locate(const struct container *container, const struct mount_identity *identity, char *ret_path)
{
        cleanup_mount_table struct mountinfo table = {};
        int r = mountinfo_open(&table, container->proc_fd);

        /* mountinfo has the reusable ids: check each candidate */
        while (r == 0 && mountinfo_next(&table)) {
                struct mount_seen seen;
                struct error ignored;

                if (target_see(container, table.mount_point, &seen, NULL, NULL, &ignored) == 0 &&
                    mount_seen_is(&seen, identity))
                        return text_copy(ret_path, PATH_MAX, table.mount_point) ? 0 : -ENAMETOOLONG;
        }
        return r < 0 ? r : -ENOENT;
}

/* The directory our mount is in and its name there, if it is on top at path; else EBUSY. */
static int open_ours(const struct container *container, const char *path, const struct mount_identity *identity,
                     const char **ret_name, struct error *error)
{
        cleanup_close int dirfd = target_open_parent(container, path, ret_name, error);
        struct mount_seen seen = {};

        if (dirfd >= 0 && mount_see(dirfd, *ret_name, &seen) == 0 && mount_seen_is(&seen, identity))
                return fd_take(&dirfd);
        (void)fail_because(error, EBUSY, OPERATION_FIND_RECORD, path,
                           "another mount covers the one that flexgraft put there");
        return error_where(error, container->name);
}

int in_container_remove(const struct container *container, const char *path, const struct mount_identity *identity,
                        bool lazily, struct error *error)
{
        const char *name = path;
        cleanup_close int dirfd = open_ours(container, path, identity, &name, error);
        char moved[PATH_MAX];
        int r;

        if (dirfd < 0 && locate(container, identity, moved) == 0)
                dirfd = open_ours(container, moved, identity, &name, error); /* the container moved it there */
        if (dirfd < 0)
                return dirfd;
        if ((r = namespace_enter_mounts(container->mnt_ns_fd, container->name, error)) < 0)
                return r;
        /* By its name in its directory's descriptor, never following a link. The container's root could put another
         * mount there just now; all it can make us do is take that away from itself. */
        if (fchdir(dirfd) < 0)
                return container_fail(container, errno, "fchdir", path, error);
        if (lazily && (r = send_nothing(container, AT_FDCWD, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT)) < 0)
                return container_fail(container, -r, OPERATION_MOUNT_SETATTR, path, error);
        if (umount2(name, UMOUNT_NOFOLLOW | (lazily ? MNT_DETACH : 0)) < 0)
                return container_fail(container, errno, OPERATION_UMOUNT2, path, error);
        return 0;
}
