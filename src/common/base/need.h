/* SPDX-License-Identifier: Apache-2.0 */
/*
 * need.h - what a node must have, as bits: the rows of the kinds of mounts, volumes, pools and filesystems name what they
 * cannot do without, and host-check (host/rows.c) has a row for each of these that says whether it is there.
 */
#ifndef FLEXGRAFT_BASE_NEED_H
#define FLEXGRAFT_BASE_NEED_H

#include <stdint.h>

/* In the order in which host-check shows them. */
enum need {
        NEED_OPENAT2,
        NEED_PIDFD,
        NEED_CLOSE_RANGE,
        NEED_FSOPEN,
        NEED_OPEN_TREE,
        NEED_MOVE_MOUNT,
        NEED_MOUNT_SETATTR,
        NEED_BENEATH,
        NEED_OPEN_TREE_ATTR,
        NEED_UNIQUE_IDS,
        NEED_STATMOUNT,
        NEED_SECCOMP,

        NEED_ROOT,
        NEED_NODE_USERS,
        NEED_NODE_PIDS,
        NEED_USER_NAMESPACES,
        NEED_USER_OVERLAY,

        NEED_EXT4,
        NEED_XFS,
        NEED_BTRFS,
        NEED_OVERLAY,
        NEED_NFS,
        NEED_FUSE,

        NEED_MAP_EXT4,
        NEED_MAP_XFS,
        NEED_MAP_BTRFS,
        NEED_MAP_TMPFS,
        NEED_MAP_OVERLAY,
        NEED_MAP_NFS,
        NEED_MAP_FUSE,
        NEED_FUSE_PASSTHROUGH,

        NEED_LOOP,
        NEED_LOOP_CONFIGURE,
        NEED_DEVICE_MAPPER,
        NEED_DM_THIN,
        NEED_DM_SNAPSHOT,
        NEED_DM_MIRROR,
        NEED_DM_RAID,
        NEED_PMEM_REGIONS,
        NEED_DEVICE_CGROUP,

        NEED_MKFS_EXT4,
        NEED_E2FSCK,
        NEED_RESIZE2FS,
        NEED_MKFS_XFS,
        NEED_XFS_GROWFS,
        NEED_MKFS_BTRFS,
        NEED_BTRFS_TOOL,
        NEED_LVM,
        NEED_PMEM_NAMESPACES,
        NEED_REMAP_DAEMON,

        NEED_RUNTIMES,
        NEED_ENGINES,
        NEED_HOOKS,
        NEED_KUBELET,
        NEED_APPARMOR,
        NEED_SELINUX,
        NEED_CLOCK,

        NEEDS
};

#define NEEDED_BY_ALL "every program" /* among those that need one, in host-check's rows */

typedef uint64_t need_set;
_Static_assert(NEEDS <= 64, "a need_set has a bit for each");

/* NEED(LVM) - the set of this one. */
#define NEED(name) (UINT64_C(1) << NEED_##name)

#endif
