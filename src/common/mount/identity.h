/* SPDX-License-Identifier: Apache-2.0 */
/*
 * identity.h - one mount, known again later.
 */
#ifndef FLEXGRAFT_MOUNT_IDENTITY_H
#define FLEXGRAFT_MOUNT_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Since Linux 6.8 (STATX_MNT_ID_UNIQUE) an id is never used again and is enough. Before, mount ids are recycled, so
 * the device and the root's inode number stand beside it: the three together may be wrong only for the same directory.
 * The id of a detached mount stays the same when it is placed (seen on 6.18 and 6.1).
 */
struct mount_identity {
        bool unique;
        uint64_t id;
        uint64_t short_id; /* the reusable one, which is what mountinfo shows; the same as id where there is no other */
        uint64_t device;   /* makedev() of the filesystem, as mountinfo shows it where major is not 0 */
        uint64_t inode;    /* of the mount's root; 0 with a unique id */
};

struct mount_seen {
        struct mount_identity identity;
        bool root; /* the descriptor is the root of that mount */
        bool directory;
        uint64_t device; /* makedev() of the filesystem */
};

/*
 * mount_see() - the mount that dirfd (with path "") or a path beneath it is on. Final symbolic links are not followed,
 * automounts not triggered, remote filesystems not asked. Returns 0 or negative errno.
 */
int mount_see(int dirfd, const char *path, struct mount_seen *ret_seen);

/*
 * mount_see_link() - likewise, but the final link is followed: one of /proc, which leads to a process's file or
 * directory. What the filesystem does not tell fails, but for one of another user namespace: of that only the mount is known.
 */
int mount_see_link(int dirfd, const char *path, struct mount_seen *ret_seen);

/* mount_see_short_id() - the reusable id of the mount that fd is on, which mount_see() leaves out to save a call. */
int mount_see_short_id(int fd, uint64_t *ret_short_id);

/* mount_seen_is() - whether what was seen is the root of this very mount. */
bool mount_seen_is(const struct mount_seen *seen, const struct mount_identity *identity);

/*
 * mount_identity_is_in() - whether a mount namespace holds the mount, wherever: what lies below another mount, or below a
 * directory that is covered, is still there. mnt_ns_id: 0 is the caller's own.
 *
 * Returns: 1 or 0, or negative errno: -ENOSYS before Linux 6.8, or where the identity is not unique.
 */
int mount_identity_is_in(const struct mount_identity *identity, uint64_t mnt_ns_id);

bool mount_identity_same(const struct mount_identity *one, const struct mount_identity *other);

#endif
