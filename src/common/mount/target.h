/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target.h - find or make a mount point beneath a container's root, never leaving that root.
 *
 * The container's root may be hostile and changes its tree while we look: every path is resolved by the kernel beneath
 * the root's descriptor (openat2, RESOLVE_IN_ROOT, no magic links), opened once, and used by descriptor from then on.
 * We stay in the node's user namespace, so a FUSE filesystem of the container gives EACCES at once; but not below an
 * overlay, nor of a container without a user namespace, where it can hold even a process that was killed
 * (docs/KERNEL.md#targets-in-a-container). So this runs in a worker.
 */
#ifndef FLEXGRAFT_MOUNT_TARGET_H
#define FLEXGRAFT_MOUNT_TARGET_H

#include <limits.h>
#include <stdbool.h>
#include <sys/vfs.h>

#include "base/error.h"
#include "container/container.h"
#include "mount/identity.h"

struct target {
        int fd;                      /* O_PATH on the mount point, or -EBADF while part of the path is missing */
        int base_fd;                 /* O_PATH on the deepest directory that is there, while something is missing */
        unsigned missing;            /* how many of the path's last components are not there */
        unsigned made;               /* how many of them, from the first on, target_make() made so far */
        uid_t root_uid;              /* of the container's root, once something was made */
        gid_t root_gid;              /* likewise */
        bool directory;              /* what is there; meaningless while something is missing */
        bool mount_root;             /* something is mounted exactly here */
        struct mount_identity mount; /* the mount that fd is on */
        char path[PATH_MAX];         /* as the container sees it, symbolic links of the existing part resolved */
};

/* target_init() - a target of which nothing is known, and nothing open. */
void target_init(struct target *target);

/*
 * target_look() - what is at this path of the container. A missing path is no error: ret_target->missing says so. What
 * ret_target was before is lost; after a failure nothing in it is open.
 *
 * Takes:   path, absolute and normal (text_path_normal).
 * Needs:   CAP_DAC_OVERRIDE or CAP_DAC_READ_SEARCH for directories of the container's users.
 * Errors:  ELOOP a magic link, or too many links; ENOTDIR; EACCES a FUSE filesystem of the container's; EPERM the path
 *          leads into a kernel filesystem (proc, sysfs, cgroup, ...), where nothing should be covered up.
 */
int target_look(const struct container *container, const char *path, struct target *ret_target, struct error *error);

/*
 * target_see() - the mount that is on top at this path now. With ret_fs, and if it is this mount of ours: what
 * statfs(2) says of it, which no other filesystem is asked. Where that fails, ret_seen is filled all the same.
 * Errors: those of openat2, ENOENT among them.
 */
int target_see(const struct container *container, const char *path, struct mount_seen *ret_seen,
               const struct mount_identity *ours, struct statfs *ret_fs, struct error *error);

/*
 * target_make() - make what is missing: directories of mode 0755, and as the last component a directory or an empty
 * file of mode 0644, owned by the container's root. Counts in target->made what it made, also when it fails half way.
 *
 * Needs:   CAP_SETUID and CAP_SETGID (setfsuid), CAP_DAC_OVERRIDE.
 * Errors:  EROFS, EACCES, ENOSPC, ...; EEXIST another process just created something that is not a directory.
 */
int target_make(const struct container *container, struct target *target, bool directory, struct error *error);

/*
 * target_unmake() - take away count components of a path, from its end or from skip components before it, as far as
 * they are empty and unused. What the container put there meanwhile, or mounted there, stays.
 *
 * Takes:   made, the target that this call made them for, or NULL: then they stay if the pinned process has ended.
 * Gives:   ret_left, how many of them are left, from the first on; also after an error.
 * Errors:  EIO, ENOMEM, ...; not an error: in use, read-only or protected.
 */
int target_unmake(const struct container *container, const char *path, unsigned skip, unsigned count,
                  const struct target *made, unsigned *ret_left, struct error *error);

/* target_open_parent() - O_PATH on the directory of a resolved path's last component, and that component. */
int target_open_parent(const struct container *container, const char *path, const char **ret_name, struct error *error);

void target_release(struct target *target);
#define cleanup_target __attribute__((cleanup(target_release)))

#endif
