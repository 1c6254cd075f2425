/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/raw_grant.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "container/device_cgroup.h"

/* The other records of a device in this container. */
struct others {
        const struct mount_record *record;
        uint64_t device;
        unsigned access; /* the access that they need */
        unsigned before; /* the access allowed before them, if known */
        bool known;
};

/* An earlier record of the same id counts for the access before, not for the access needed. */
static int add_other(const struct mount_record *other, const char *id, void *argument, struct error *error)
{
        struct others *others = argument;

        (void)error; /* an unreadable record needs nothing */
        if (other == NULL || other->raw_device != others->device ||
            !container_same_namespace(&other->mnt_ns, &others->record->mnt_ns) ||
            strcmp(other->boot_id, others->record->boot_id) != 0)
                return 0;
        others->known = true;
        others->before = other->raw_before;
        if (strcmp(id, others->record->id) != 0)
                others->access |= DEVICE_READ | (other->raw_writes ? DEVICE_WRITE : 0U);
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
        struct others others = { .record = record, .device = device, .access = DEVICE_NONE };
        unsigned now;
        int r = mount_record_each(state, add_other, &others, error);

        if (r < 0 || (r = check_alone(state, record, device, writes, error)) < 0 ||
            (r = device_cgroup_look(container, device, needed, &now, error)) < 0)
                return r;
        record->raw_device = device;
        record->raw_writes = writes;
        record->raw_before = others.known ? others.before : now;
        return 0;
}

int raw_grant_settle(const struct state *state, const struct container *container, const struct mount_record *record,
                     bool included, struct error *error)
{
        struct others others = { .record = record, .device = record->raw_device, .access = DEVICE_NONE };
        int r = mount_record_each(state, add_other, &others, error);

        if (r < 0)
                return r;
        if (included)
                others.access |= DEVICE_READ | (record->raw_writes ? DEVICE_WRITE : 0U);
        return device_cgroup_set(container, record->raw_device, others.access, record->raw_before, error);
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
