/* SPDX-License-Identifier: Apache-2.0 */
#include "named/node_mount.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/fd.h"
#include "mount/detached.h"
#include "mount/mountinfo.h"
#include "state/access.h"
#include "volume/call.h"
#include "volume/mount_dir.h"

/* Whether what is on top there waits for a mount. */
static bool is_automount(const char *target)
{
        cleanup_mount_table struct mountinfo table = {};
        bool automount = false;

        if (mountinfo_open_own(&table) < 0)
                return false;
        while (mountinfo_next(&table))
                if (strcmp(table.mount_point, target) == 0)
                        automount = strcmp(table.type, "autofs") == 0;
        return automount;
}

int node_mounted_look(struct volume_call *call, const char *target, struct error *error)
{
        unsigned missing;
        int r = mount_dir_look(call, target, &missing, error);

        if (r < 0)
                return r;
        switch (r) {
        case MOUNT_DIR_MISSING:
                return fail_because(error, ENOENT, OPERATION_FIND_TARGET, target, "mount point does not exist");
        case MOUNT_DIR_OURS:
                if (volume_record_mount_dir(&call->record, target) == NULL &&
                    (r = mount_dir_adopt(call, target, /* staged= */ false, error)) < 0)
                        return r; /* volume-reconcile cannot have forgotten it: the record was lost */
                return 1;
        case MOUNT_DIR_TAKEN:
                if (!is_automount(target))
                        return fail_because(error, EBUSY, "mount", target,
                                            "something else is mounted on %s; unmount it first", target);
        }
        return 0;
}

int node_mounted_check_writes(const struct volume_call *call, struct error *error)
{
        if (!call->record.read_only && !access_reads_only(call->record.access_mode))
                return 0;
        return fail_because(error, EROFS, "mount", call->request->name,
                            "the volume is for reading alone; mount it with \"-o ro\"");
}

int node_mounted_set(const char *target, const struct mount_attributes *attributes, struct error *error)
{
        cleanup_close int fd = open(target, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        int r = fd < 0 ? fail(error, errno, "open", target)
                       : detached_mount_set(fd, target, attributes, /* user_ns_fd= */ -1, error);

        return r == -EBUSY ? fail_because(error, EBUSY, OPERATION_MOUNT_SETATTR, target,
                                          "target is busy: a file is open for writing")
                           : r;
}
