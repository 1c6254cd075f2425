/* SPDX-License-Identifier: Apache-2.0 */
/* mount_record_container.c - the container of a record: which one it is, and whether it runs. */
#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "state/mount_record.h"

int mount_record_check_namespace(const struct mount_record *record, struct error *error)
{
        char boot_id[PROC_BOOT_ID_SIZE];
        uint64_t here;
        int r = proc_boot_id(boot_id);

        if (r == 0 && (record->pid_ns == 0 || strcmp(record->boot_id, boot_id) != 0))
                return 0;
        if (r < 0 || (r = proc_pid_namespace(&here)) < 0)
                return fail(error, -r, OPERATION_READ, "/proc/self");
        if (record->pid_ns == here || container_namespace_gone(&record->mnt_ns))
                return 0;
        return fail_because(error, EXDEV, OPERATION_READ_RECORD, record->id,
                            "the record of the mount on %.200s was written in another pid namespace, where pid %d is "
                            "its container: here it is unknown whether that still runs",
                            record->target, (int)record->pid);
}

bool mount_record_is_of(const struct mount_record *record, const struct container *container, const char *boot_id)
{
        const struct container_reference process = { .pid = record->pid, .start_time = record->start_time };
        cleanup_container struct container recorded = CONTAINER_NONE;
        struct error ignored;

        if (!container_same_namespace(&record->mnt_ns, &container->mnt_ns) || strcmp(record->boot_id, boot_id) != 0)
                return false;
        return record->mnt_ns.id != 0 || mount_record_check_namespace(record, &ignored) < 0 ||
               (container_pin(&process, &recorded, &ignored) == 0 && recorded.mnt_ns.inode == container->mnt_ns.inode);
}

int mount_record_reach(const struct mount_record *record, const char *boot_id, struct container *ret_container,
                       struct error *error)
{
        const struct container_reference process = { .pid = record->pid, .start_time = record->start_time };
        int r;

        if (strcmp(record->boot_id, boot_id) != 0)
                return fail_because(error, ESRCH, OPERATION_PIN_CONTAINER, record->id,
                                    "the node has been rebooted since");
        if ((r = mount_record_check_namespace(record, error)) < 0)
                return r;
        r = container_pin(&process, ret_container, error);
        if (r == 0 && !container_same_namespace(&ret_container->mnt_ns, &record->mnt_ns)) {
                container_release(ret_container);
                r = -ESRCH;
        }
        if (r == -EINVAL) /* by now that process is in the node's mount namespace */
                r = -ESRCH;
        if (r == -ESRCH && record->mnt_ns.id != 0) /* inode numbers are used again: they prove nothing */
                r = container_pin_namespace(&record->mnt_ns, ret_container, error);
        if (r == 0 && record->container_id[0] != '\0') {
                (void)text_copy(ret_container->id, sizeof ret_container->id, record->container_id);
                (void)text_copy(ret_container->name, sizeof ret_container->name, record->container_id);
        }
        return r;
}
