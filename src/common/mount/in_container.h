/* SPDX-License-Identifier: Apache-2.0 */
/*
 * in_container.h - move a detached mount into a container's mount tree; find it there; unmount it.
 */
#ifndef FLEXGRAFT_MOUNT_IN_CONTAINER_H
#define FLEXGRAFT_MOUNT_IN_CONTAINER_H

#include <sys/vfs.h>

#include "base/error.h"
#include "container/container.h"
#include "mount/detached.h"
#include "mount/identity.h"
#include "mount/target.h"

/*
 * in_container_place() - the detached mount becomes visible at the target; with beneath, under the mount whose root the
 * target is, once that is taken away.
 *
 * Runs in: a worker; it is in the container's mount namespace afterwards, and in the node's user namespace still.
 * Needs:   CAP_SYS_ADMIN, CAP_SYS_CHROOT.
 * Errors:  EINVAL a file onto a directory or the reverse, or a target in another mount namespace; ENOENT the target
 *          was removed meanwhile. With beneath, EINVAL also where the kernel cannot (before Linux 6.5).
 */
int in_container_place(int mount_fd, const struct container *container, const struct target *target, bool beneath,
                       const struct mount_attributes *attributes, struct error *error);

/* in_container_knows_beneath() - whether the kernel can place a mount beneath: 0, or ENOSYS (before Linux 6.5) or EPERM. */
int in_container_knows_beneath(void);

/*
 * in_container_count_below() - how many mounts the container has anywhere below a path. Reads its whole mountinfo, so
 * it is for recursive mounts alone.
 */
int in_container_count_below(const struct container *container, const char *path, unsigned *ret_count,
                             struct error *error);

/* Where a mount of flexgraft's is, as the container sees it. */
enum placement {
        PLACEMENT_PRESENT, /* on top at its target */
        PLACEMENT_COVERED, /* in the container's tree, but not on top at its target: something covers it, or it moved */
        PLACEMENT_GONE,
};

/* placement_word() - "present", "covered", "gone". */
const char *placement_word(enum placement placement);

/*
 * in_container_find() - look at path in the container, and if our mount is not there, ask the kernel for it by its id.
 *
 * Needs:   CAP_SYS_ADMIN, for statmount of another namespace (Linux 6.11); before, the container's mountinfo is read.
 * Errors:  those of target_look(); a path that is gone is an answer, not an error.
 */
int in_container_find(const struct container *container, const char *path, const struct mount_identity *identity,
                      enum placement *ret_placement, struct error *error);

/*
 * in_container_find_statfs() - likewise, and where it is present, what statfs(2) says of it: the options of the mount,
 * and how full its filesystem is. The placement is known also where only that fails.
 */
int in_container_find_statfs(const struct container *container, const char *path, const struct mount_identity *identity,
                             enum placement *ret_placement, struct statfs *ret_fs, struct error *error);

/*
 * in_container_has() - whether the container's tree has our mount anywhere; no path is looked up. Needs, and is: as
 * in_container_find().
 */
int in_container_has(const struct container *container, const struct mount_identity *identity, bool *ret_has,
                     struct error *error);

/*
 * in_container_has_part() - whether the container's tree has any mount of a directory of a filesystem, or of what is below
 * that, wherever: all of its mountinfo is read. device and root: as mountinfo_locate() gives them.
 *
 * Returns: 1 or 0, or negative errno, if not all of the tree can be read.
 */
int in_container_has_part(const struct container *container, uint64_t device, const char *root);

/*
 * in_container_options() - our mount at path as it is now: "rw,nosuid,nodev,relatime".
 * Errors:  ESTALE ours is not on top there.
 */
int in_container_options(const struct container *container, const char *path, const struct mount_identity *identity,
                         char *ret_text, size_t size, struct error *error);

/*
 * in_container_ask() - 0 if the filesystem of fd, at path, answers fstatfs() to the root of the container's user
 * namespace. A FUSE filesystem of that namespace does not ask its daemon on behalf of other processes.
 */
int in_container_ask(const struct container *container, int fd, const char *path, struct error *error);

/*
 * in_container_take_back() - undo in_container_place() by the mount's own descriptor, wherever the container has moved
 * it since. The kernel unmounts what is on top of it first (umount by descriptor names the topmost mount), so what was
 * put over it in between goes with it.
 *
 * Runs in: a worker in the node's mount namespace; it is in the container's afterwards.
 */
int in_container_take_back(int mount_fd, const struct container *container, struct error *error);

/*
 * in_container_remove() - unmount ours from path, or from where the container has moved it. Where something else
 * covers it: EBUSY, and nothing is touched.
 *
 * Runs in: a worker; it is in the container's mount namespace afterwards.
 * Takes:   lazily: detach it at once, also when files on it are in use or its server is gone.
 * Errors:  EBUSY in use, or covered.
 */
int in_container_remove(const struct container *container, const char *path, const struct mount_identity *identity,
                        bool lazily, struct error *error);

#endif
