/* SPDX-License-Identifier: Apache-2.0 */
#include "mount/superblock.h"

#include <errno.h>

const struct hint mount_hints[] = {
        { OPERATION_MOUNT_SETATTR, EINVAL,
          "this kernel cannot id-map this filesystem (or a mount below the source); \"ids\": \"remap\" remaps "
          "owners, \"fallback\": \"remap\" in place of \"ids\" does so only where that is needed, \"ids\": \"host\" "
          "mounts without mapping: foreign owners then show as 65534" },
        { OPERATION_MOUNT_SETATTR, EPERM,
          "the source is already id-mapped, or its filesystem or its locked attributes belong to another user "
          "namespace; \"ids\": \"host\" mounts without mapping: foreign owners then show as 65534" },
        { OPERATION_OPEN_TREE_ATTR, EPERM,
          "\"ids\": \"host\" mounts without mapping: foreign owners then show as 65534" },
        { OPERATION_OPEN_TREE, EINVAL,
          "an unbindable mount cannot be cloned; findmnt -o TARGET,PROPAGATION lists them" },
        { OPERATION_CLONE_MOUNT, ESTALE, "try again" },
        { OPERATION_CLONE_MOUNT, EINVAL, "\"recursive\": true takes the mounts below it along" },
        { OPERATION_FSCONFIG, EPERM,
          "since Linux 6.11 a user namespace may own few types of filesystems: \"ids\": \"auto\" maps ids instead" },
        { OPERATION_FSCONFIG, EINVAL,
          "see the kernel's messages, here or in dmesg: an option, or the device's content" },
        { OPERATION_FSOPEN, ENODEV, "cat /proc/filesystems lists the types; modprobe loads one" },
        { OPERATION_MOVE_MOUNT, ENOENT, "the target was removed meanwhile; try again" },
        { OPERATION_MOVE_MOUNT, EINVAL, "the target is not in the container's own mount namespace; choose another" },
        { OPERATION_LOOK_AGAIN, ESTALE, "a process in the container changed the target's path; try again" },
        { OPERATION_UNSHARE, ENOSPC,
          "user.max_mnt_namespaces or user.max_user_namespaces is reached, perhaps by one container: those of containers "
          "count for the root that started them, too; lsns shows whose they are" },
        { OPERATION_UMOUNT2, EBUSY,
          "a process in the container uses it, or it has mounts below it; \"force\": true detaches it" },
        {},
};
