/* SPDX-License-Identifier: Apache-2.0 */
#include "state/state_dir.h"

#include <errno.h>
#include <stddef.h>

#include "container/container.h"
#include "mount/superblock.h"

const struct hint state_hints[] = {
        { OPERATION_CHECK_POLICY, EACCES, "policy.json lists what annotations and volumes may use" },
        { OPERATION_READ_POLICY, EPERM, "chown root policy.json and chmod 0644: only root may be able to write to it" },
        { OPERATION_READ_RECORD, EXDEV,
          "run flexgraft's programs in the pid namespace of the node (hostPID in a pod)" },
        { OPERATION_READ, EXDEV, "run flexgraft's programs in the pid namespace of the node (hostPID in a pod)" },
        { OPERATION_OPEN_STATE, EPERM,
          "chown root and chmod 0700 the directory: only root may be able to write to it" },
        { OPERATION_FIND_CONTENT, ENODATA,
          "restore the disk, or give the volume up with volume-delete: then it is made anew" },
        {},
};

const struct hint *const state_all_hints[] = { state_hints, mount_hints, container_hints, failure_hints, NULL };
