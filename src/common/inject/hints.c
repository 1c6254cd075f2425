/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/reply_failure.h"

#include <errno.h>
#include <stddef.h>

#include "container/container.h"
#include "mount/superblock.h"
#include "state/state_dir.h"

#define HINT_DEAD "\"replace\": true mounts the source anew, once that answers again; mount-remove removes the mount"
#define HINT_FOREIGN "\"ids\": \"host\" mounts without mapping: foreign owners then show as 65534"

static const struct hint hints[] = {
        { OPERATION_OPEN_ROOT, 0, "install it as a createRuntime or prestart hook: these run before pivot_root" },
        { OPERATION_MAP_OWNERS, 0, HINT_FOREIGN },
        { OPERATION_MAP_ANYHOW, 0, HINT_FOREIGN },
        { OPERATION_MAP_IDS, EACCES,
          "say \"ids\": \"host\" to map none; or name the way (\"idmapped\", or \"userns\" or \"remap\" where the "
          "helper has it), if that user may have the files of every owner" },
        { OPERATION_MAP_IDS, EPERM, "run this program in the node's user namespace" },
        { OPERATION_MAP_IDS, 0,
          "use \"ids\": \"auto\", or \"host\" to mount without mapping: foreign owners then show as 65534" },
        { OPERATION_FIND_RECORD, EBUSY,
          "mount-list shows the mounts of flexgraft; unmount any other inside the container: nsenter -t PID -m umount "
          "TARGET" },
        { OPERATION_FIND_TARGET, EBUSY,
          "\"replace\": true takes the place of a mount of flexgraft's (mount-list shows them), mount-remove removes "
          "one; unmount any other inside the container: nsenter -t PID -m umount TARGET" },
        { OPERATION_FIND_TARGET, ESTALE, HINT_DEAD },
        { OPERATION_FIND_TARGET, ENOTCONN, HINT_DEAD },
        { OPERATION_FIND_TARGET, EIO, HINT_DEAD },
        { OPERATION_FIND_TARGET, ENODEV, HINT_DEAD },
        { OPERATION_FIND_TARGET, ENOENT, "use \"mkdir\": true (the default) to create missing directories" },
        { OPERATION_FIND_TARGET, EPERM, "choose a target outside /proc, /sys and the cgroup filesystem" },
        { OPERATION_OPENAT2, ELOOP,
          "the target contains a magic link (like /proc/PID/root) or too many symbolic links" },
        { OPERATION_OPENAT2, EACCES, "the target lies below a FUSE filesystem of the container; choose another" },
        { OPERATION_START_REMAP_DAEMON, ENOENT, "install remap-daemon with make install" },
        { OPERATION_LOCK_ATTRIBUTES, EINVAL,
          "leave out \"locked\"; a container without a user namespace of its own should not have CAP_SYS_ADMIN" },
        {},
};

const struct hint *const inject_all_hints[] = { hints, state_hints, mount_hints, container_hints, failure_hints, NULL };
