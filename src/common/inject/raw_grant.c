/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/raw_grant.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "block/loop_guard.h"
#include "block/stack.h"
#include "container/device_cgroup.h"
#include "state/uses.h"

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

        if (other == NULL)
                return mount_record_unread(error); /* one that is damaged needs nothing */
        if (other->raw_device != others->device || !container_same_namespace(&other->mnt_ns, &others->record->mnt_ns) ||
            strcmp(other->boot_id, others->record->boot_id) != 0)
                return 0;
        others->known = true;
        others->before = other->raw_before;
        if (!mount_record_same_id(id, others->record->id) && !other->removed)
                others->access |= DEVICE_READ | (other->raw_writes ? DEVICE_WRITE : 0U);
        return 0;
}

struct claim {
        const struct mount_record *record;
        bool writes;
        bool any;     /* the container itself, too */
        bool written; /* by that other one: then "readOnly" would change nothing */
        char text[USES_TEXT_SIZE];
};

static int match_claim(const struct use *use, void *argument, struct error *error)
{
        struct claim *claim = argument;
        const struct mount_record *record = claim->record;

        (void)error;
        if (!use->raw || (!claim->writes && !use->writes) || (use->pending && !use->ended))
                return 0;
        if (use->mount != NULL && !use->ended && !claim->any &&
            (mount_record_same_id(use->mount->id, record->id) ||
             container_same_namespace(&use->mount->mnt_ns, &record->mnt_ns)))
                return 0;
        claim->written = use->writes;
        uses_describe(use, claim->text);
        return 1;
}

/* What stands on the device, or has it on itself, has the same blocks. */
static int check_claim(const char *state_dir, struct claim *claim, uint64_t device, struct error *error)
{
        char keys[USE_KEYS_SIZE] = "";
        struct block_stack stack;
        int r = block_stack_find(device, BLOCK_STACK_BELOW, &stack, error);

        if (r < 0)
                return r;
        for (size_t i = 0; i < stack.count; i++)
                use_keys_add_device(keys, stack.numbers[i]);
        r = uses_each_released(state_dir, keys, claim->record->id, match_claim, claim, error);
        if (r <= 0)
                return r;
        return fail_because(error, EBUSY, claim->written ? OPERATION_SHARE_DEVICE : OPERATION_FIND_DEVICE,
                            claim->record->origin, "in use by %s", claim->text);
}

/* A device that one container may write is in no other container, and no pod's: two writers would destroy its content. */
int raw_grant_check_alone(const char *state_dir, const struct mount_record *record, uint64_t device, bool writes,
                          struct error *error)
{
        struct claim claim = { .record = record, .writes = writes };

        return check_claim(state_dir, &claim, device, error);
}

int raw_grant_check_none(const char *state_dir, const struct mount_record *record, uint64_t device, struct error *error)
{
        struct claim claim = { .record = record, .any = true };

        return check_claim(state_dir, &claim, device, error);
}

struct guard_search {
        const struct mount_record *record;
        uint64_t device;
        bool writes;
        uint64_t number;
        int fd;
};

static int match_guard(const struct use *use, void *argument, struct error *error)
{
        struct guard_search *search = argument;
        const struct mount_record *other = use->mount; /* also an earlier record of the same id */

        (void)error;
        if (other == NULL || other->raw_source != search->device || other->removed ||
            (search->writes && !other->raw_writes) ||
            !container_same_namespace(&other->mnt_ns, &search->record->mnt_ns))
                return 0;
        search->number = other->raw_device;
        search->fd = loop_guard_hold(other->raw_device, mount_record_guard_key(other));
        return search->fd >= 0;
}

int raw_grant_find_guard(const char *state_dir, const struct mount_record *record, uint64_t device, bool writes,
                         uint64_t *ret_number, struct error *error)
{
        struct guard_search search = { .record = record, .device = device, .writes = writes, .fd = -ENOENT };
        char keys[USE_KEYS_SIZE] = "";
        int r;

        use_keys_add_device(keys, device);
        r = uses_each(state_dir, keys, match_guard, &search, error);
        *ret_number = search.number;
        return r < 0 ? r : r > 0 ? search.fd : -ENOENT;
}

/* The raw device that the record's mount replaces, as if it were the record's own. */
static const struct mount_record *of_replaced(const struct mount_record *record)
{
        static struct mount_record replaced;

        replaced = *record;
        replaced.raw_device = record->replaces_raw;
        replaced.raw_before = record->replaces_raw_before;
        replaced.raw_source = record->replaces_raw_source;
        return &replaced;
}

int raw_grant_prepare(const struct state *state, const struct container *container, struct mount_record *record,
                      bool writes, struct error *error)
{
        unsigned needed = DEVICE_READ | (writes ? DEVICE_WRITE : 0U);
        struct others others = { .record = record, .device = record->raw_device, .access = DEVICE_NONE };
        unsigned now;
        int r = mount_record_each_of(state, &record->mnt_ns, record->boot_id, /* except= */ NULL, add_other, &others,
                                     error);

        if (r < 0 || (r = device_cgroup_look(container, record->raw_device, needed, &now, error)) < 0)
                return r;
        record->raw_writes = writes;
        record->raw_before = others.known ? others.before : now;
        return 0;
}

int raw_grant_release(const struct state *state, const struct mount_record *record, struct error *error)
{
        char id[MOUNT_RECORD_ID_MAX];
        int r;

        if (record->raw_source == 0)
                return 0;
        r = loop_guard_release(record->raw_device, mount_record_guard_key(record), error);
        if (r < 0)
                return r;
        if (r > 0)
                return (r = mount_record_write_removed(state, record, error)) < 0 ? r : 1;
        mount_record_removed_id(record, id);
        return mount_record_remove(state, id, error);
}

int raw_grant_release_all(const struct state *state, const struct mount_record *record, struct error *error)
{
        int r = raw_grant_release(state, record, error);
        int other;

        if (r < 0 || record->replaces_raw_source == 0)
                return r;
        other = raw_grant_release(state, of_replaced(record), error);
        return other != 0 ? other : r;
}

int raw_grant_settle(const struct state *state, const struct container *container, const struct mount_record *record,
                     bool included, struct error *error)
{
        struct others others = { .record = record, .device = record->raw_device, .access = DEVICE_NONE };
        struct error ignored;
        int r = mount_record_each_of(state, &record->mnt_ns, record->boot_id, /* except= */ NULL, add_other, &others,
                                     error);

        if (r < 0)
                return r;
        if (included)
                others.access |= DEVICE_READ | (record->raw_writes ? DEVICE_WRITE : 0U);
        r = device_cgroup_set(container, record->raw_device, others.access, record->raw_before, error);
        if (r < 0 && !included && others.access == DEVICE_NONE)
                (void)raw_grant_release(state, record, &ignored); /* without it, what the group allows opens nothing */
        return r < 0 || included || others.access != DEVICE_NONE ? r : raw_grant_release(state, record, error);
}

int raw_grant_settle_replaced(const struct state *state, const struct container *container,
                              const struct mount_record *record, struct error *error)
{
        if (record->replaces_raw == 0)
                return 0;
        if (record->replaces_raw == record->raw_device)
                return raw_grant_settle(state, container, record, /* included= */ true, error);
        return raw_grant_settle(state, container, of_replaced(record), /* included= */ false, error);
}
