/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idmap.h - a user namespace used only as a mapping, for id-mapped mounts.
 */
#ifndef FLEXGRAFT_MOUNT_IDMAP_H
#define FLEXGRAFT_MOUNT_IDMAP_H

#include "base/error.h"
#include "process/id_ranges.h"
#include "process/worker.h"

struct idmap {
        struct id_range users[ID_RANGES_MAX]; /* inside: as the filesystem has it; outside: as the mount shows it */
        int user_count;
        struct id_range groups[ID_RANGES_MAX];
        int group_count;
};

/*
 * idmap_open() - a user namespace with these maps and no process: a child makes it, we write its maps, and it
 * ends.
 *
 * Needs:   CAP_SETUID and CAP_SETGID; CAP_SETFCAP when the node's id 0 is among the outside ones
 *          (docs/KERNEL.md#id-mapped-mounts); CAP_SYS_PTRACE for the maps of a process in another user namespace.
 * Returns: the namespace's descriptor, owned by the caller.
 * Errors:  EINVAL a map is empty or its ranges overlap; ENOSPC user.max_user_namespaces is reached.
 */
int idmap_open(const struct idmap *mapping, struct error *error);

/*
 * idmap_open_after() - the same; the child calls first(argument) before, as worker_run_apart() would: one child less
 * where another is needed anyway. What the function left in the argument is the caller's, also when this fails.
 */
int idmap_open_after(const struct idmap *mapping, worker_function *first, void *argument, struct error *error);

/*
 * idmap_of_mount() - the mapping of an id-mapped mount, wherever it is.
 *
 * Needs:   CAP_SYS_ADMIN, for a mount of another namespace.
 * Takes:   mnt_ns_id and mount_id, the ids that are never used again (struct namespace_identity, mount_identity).
 * Returns: 0, or negative errno without words: ENODATA it is not id-mapped; ENOSYS before Linux 6.15; ENOENT.
 */
int idmap_of_mount(uint64_t mnt_ns_id, uint64_t mount_id, struct idmap *ret_mapping);

#endif
