/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/raw_grant.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "container/device_cgroup.h"

/*
 * The access that other records of the device in this container need, and the access allowed before them. An earlier
 * record of the same id counts only for the latter. ret_before and ret_known may be NULL.
 */
static int read_others(const struct state *state, const struct mount_record *record, uint64_t device,
                       unsigned *ret_access, unsigned *ret_before, bool *ret_known, struct error *error)
{
        static struct mount_record other;
        DIR *directory = mount_record_list(state, error);
        char id[MOUNT_RECORD_ID_MAX];

        *ret_access = DEVICE_NONE;
        if (ret_known != NULL)
                *ret_known = false;
        if (directory == NULL)
                return error_negative(error->errnum);
        while (mount_record_next(directory, id)) {
                struct error ignored; /* an unreadable record needs nothing */

                if (mount_record_read(state, id, &other, &ignored) < 0 || other.raw_device != device ||
                    !container_same_namespace(&other.mnt_ns, &record->mnt_ns) ||
                    strcmp(other.boot_id, record->boot_id) != 0)
                        continue;
                if (ret_known != NULL) {
                        *ret_known = true;
                        *ret_before = other.raw_before;
                }
                if (strcmp(id, record->id) != 0)
                        *ret_access |= DEVICE_READ | (other.raw_writes ? DEVICE_WRITE : 0U);
        }
        (void)closedir(directory);
        return 0;
}

struct claim {
        const struct mount_record *record;
        uint64_t device;
        bool writes;
};

static bool competes(const struct mount_record *other, const void *argument)
{
        const struct claim *claim = argument;

        return other->raw_device == claim->device && (claim->writes || other->raw_writes) &&
               !container_same_namespace(&other->mnt_ns, &claim->record->mnt_ns);
}

/* A device that one container may write is in no other container: two writers would destroy its content. */
static int check_alone(const struct state *state, const struct mount_record *record, uint64_t device, bool writes,
                       struct error *error)
{
        const struct claim claim = { .record = record, .device = device, .writes = writes };
        char name[CONTAINER_NAME_MAX];
        int r = mount_record_find_live(state, record, competes, &claim, name, error);

        if (r == 0)
                return fail_because(error, EBUSY, "find device", record->origin, "container %s uses the device already",
                                    name);
        return r == -ENOENT ? 0 : r;
}

int raw_grant_prepare(const struct state *state, const struct container *container, struct mount_record *record,
                      uint64_t device, bool writes, struct error *error)
{
        unsigned needed = DEVICE_READ | (writes ? DEVICE_WRITE : 0U);
        unsigned others;
        unsigned before = DEVICE_NONE;
        unsigned now;
        bool known;
        int r = read_others(state, record, device, &others, &before, &known, error);

        if (r < 0 || (r = check_alone(state, record, device, writes, error)) < 0 ||
            (r = device_cgroup_look(container, device, needed, &now, error)) < 0)
                return r;
        record->raw_device = device;
        record->raw_writes = writes;
        record->raw_before = known ? before : now;
        return 0;
}

int raw_grant_settle(const struct state *state, const struct container *container, const struct mount_record *record,
                     bool included, struct error *error)
{
        unsigned access;
        int r = read_others(state, record, record->raw_device, &access, NULL, NULL, error);

        if (r < 0)
                return r;
        if (included)
                access |= DEVICE_READ | (record->raw_writes ? DEVICE_WRITE : 0U);
        return device_cgroup_set(container, record->raw_device, access, record->raw_before, error);
}

int raw_grant_settle_replaced(const struct state *state, const struct container *container,
                              const struct mount_record *record, struct error *error)
{
        static struct mount_record replaced;

        if (record->replaces_raw == 0)
                return 0;
        if (record->replaces_raw == record->raw_device)
                return raw_grant_settle(state, container, record, /* included= */ true, error);
        replaced = *record;
        replaced.raw_device = record->replaces_raw;
        replaced.raw_before = record->replaces_raw_before;
        return raw_grant_settle(state, container, &replaced, /* included= */ false, error);
}
