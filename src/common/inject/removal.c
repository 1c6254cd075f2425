/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/removal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/text.h"
#include "block/loop_guard.h"
#include "inject/former.h"
#include "inject/raw_grant.h"
#include "mount/target.h"
#include "process/namespace.h"
#include "process/worker.h"

#define UNMAKE_MS 5000 /* so long a removal waits for calls that are at work on mounts below its own directories */
#define UNMAKE_PAUSE_MS 20

void removal_init(struct removal *removal, const struct request *request)
{
        removal->request = request;
        removal->container = (struct container)CONTAINER_NONE;
        removal->state = (struct state)STATE_NONE;
        removal->wishes = (struct state)STATE_NONE;
        removal->node_mnt_ns_fd = -EBADF;
}

static bool has_raw(const struct removal *removal)
{
        return removal->record.raw_device != 0 || removal->record.replaces_raw != 0 ||
               (removal->partner.id[0] != '\0' && removal->partner.raw_device != 0);
}

/* Unmounts the mount if the container has it anywhere; ret_removed is set if it had. */
static int remove_if_there(struct removal *removal, const char *path, const struct mount_identity *identity,
                           bool *ret_removed, struct error *error)
{
        enum placement placement;
        int r = in_container_find(&removal->container, path, identity, &placement, error);

        if (r < 0 || placement == PLACEMENT_GONE)
                return r;
        removal->lazily = true;
        r = in_container_remove(&removal->container, path, identity, /* lazily= */ true, error);
        *ret_removed = r == 0;
        return r;
}

static int unplace(struct removal *removal, struct error *error)
{
        const struct mount_record *record = &removal->record;
        enum placement placement;
        bool removed = false;
        bool lazily;
        int r;

        if (!removal->reachable) {
                removal->already = true;
                return 0;
        }
        if (has_raw(removal) || record->volume[0] != '\0') {
                removal->node_mnt_ns_fd = namespace_open_own_mounts(error);
                if (removal->node_mnt_ns_fd < 0)
                        return removal->node_mnt_ns_fd;
        }
        if (record->removed) {
                removal->already = true;
                return 0;
        }
        /* interrupted replacement: the old mount covers the new one, or is the only one */
        if (record->replaces.id != 0 &&
            (r = remove_if_there(removal, record->mount_point, &record->replaces, &removed, error)) < 0)
                return r;
        r = in_container_find(&removal->container, record->mount_point, &record->identity, &placement, error);
        if (r < 0)
                return r;
        if (placement == PLACEMENT_GONE) {
                removal->already = !removed;
                return 0;
        }
        lazily = removal->request->force;
        if (record->recursive && !lazily) {
                /* With mounts below, the kernel unmounts the whole tree or nothing: all must have come with this mount
                 * (docs/KERNEL.md#asking-about-a-mount-and-removing-it). */
                unsigned below;

                r = in_container_count_below(&removal->container, record->mount_point, &below, error);
                if (r < 0)
                        return r;
                if (record->below != MOUNT_RECORD_NOT_COUNTED && below > record->below) {
                        (void)fail_because(error, EBUSY, OPERATION_UMOUNT2, record->target,
                                           "the container has mounts of its own below it");
                        return error_where(error, removal->container.name);
                }
                lazily = below > 0;
        }
        removal->lazily = removal->lazily || lazily;
        return in_container_remove(&removal->container, record->mount_point, &record->identity, lazily, error);
}

/* Errors are those of the release, which writes out what comes in between. */
static void flush_raw(const struct mount_record *record)
{
        const uint64_t devices[] = { record->raw_device, record->replaces_raw };
        struct error ignored;

        for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++)
                if (devices[i] != 0)
                        (void)loop_guard_flush(devices[i], mount_record_guard_key(record), &ignored);
}

int removal_forbid_device(struct removal *removal, struct error *error)
{
        const struct mount_record *both[] = { &removal->record, &removal->partner };
        size_t count = removal->partner.id[0] != '\0' ? 2 : 1;
        cleanup_container struct container recorded = CONTAINER_NONE;
        const struct container *container = &recorded;
        struct error ignored;
        int r = 0;

        if (count == 2 && ((r = mount_record_write_former(&removal->state, &removal->partner, error)) < 0 ||
                           (r = mount_record_remove(&removal->state, removal->partner.id, error)) < 0))
                return r;
        if (!has_raw(removal))
                return 0;
        /* whose /dev has the device, and whose /sys/fs/cgroup the container's group */
        if (removal->reachable && (r = namespace_enter_mounts(removal->node_mnt_ns_fd, "node", error)) < 0)
                return r;
        for (size_t i = 0; i < count; i++)
                flush_raw(both[i]); /* a device that does not answer keeps no other call waiting for the lock */
        /* no other call begins to share the device between the look at who does and its end */
        if ((r = state_lock(&removal->state, mount_record_tree_key(&removal->record.mnt_ns), error)) < 0)
                return r;
        for (size_t i = 0; !removal->reachable && r >= 0 && i < count; i++) {
                r = raw_grant_release_all(&removal->state, both[i], error);
                removal->in_use = removal->in_use || r > 0;
        }
        if (!removal->reachable)
                return r < 0 ? r : 0;
        /* in the control group of the recorded process, if that still runs */
        if (mount_record_reach(&removal->record, removal->record.boot_id, &recorded, &ignored) < 0)
                container = &removal->container;
        for (size_t i = 0; r >= 0 && i < count; i++)
                if (both[i]->raw_device != 0) {
                        r = raw_grant_settle(&removal->state, container, both[i], /* included= */ false, error);
                        removal->in_use = removal->in_use || r > 0;
                }
        if (r >= 0)
                r = raw_grant_settle_replaced(&removal->state, container, &removal->record, error);
        removal->in_use = removal->in_use || r > 0;
        return r < 0 ? r : 0;
}

int removal_unplace(struct removal *removal, struct error *error)
{
        const struct mount_record *partner = &removal->partner;
        bool removed = false;
        int r = unplace(removal, error);

        if (r < 0 || !removal->reachable || partner->id[0] == '\0')
                return r;
        r = remove_if_there(removal, partner->mount_point, &partner->identity, &removed, error);
        removal->already = removal->already && !removed;
        return r;
}

/* Takes away what was made for the mount; with the lock of the container's tree, under which mount points come and go. */
static int unmake_target(struct removal *removal, bool *ret_busy, struct error *error)
{
        const struct mount_record *partner = &removal->partner;
        struct mount_record *record = &removal->record; /* its lock is held: no other call has handed it more since */

        if (partner->id[0] != '\0' && strcmp(partner->mount_point, record->mount_point) == 0 &&
            partner->made > record->made)
                record->made = partner->made;
        return made_unmake(&removal->state, &removal->container, record, ret_busy, error);
}

int removal_unmake_target(struct removal *removal, struct error *error)
{
        const int64_t half_ms = (int64_t)removal->request->timeout_seconds * 1000 / 2;
        const int64_t until_ms = clock_now_ms() + (half_ms < UNMAKE_MS ? half_ms : UNMAKE_MS);
        const struct mount_record *record = &removal->record;
        const uint64_t tree = mount_record_tree_key(&record->mnt_ns);
        bool busy = true;
        bool waited;
        int r = 0;

        if (!removal->reachable || record->removed) /* then it made none, and its record may be gone already */
                return 0;
        while (busy && (r = state_lock(&removal->state, tree, error)) == 0 &&
               (r = unmake_target(removal, &busy, error)) == 0 && busy && clock_now_ms() < until_ms) {
                state_unlock(&removal->state, tree);
                waited = worker_waits_for_others(false); /* but for other calls */
                clock_pause_ms(UNMAKE_PAUSE_MS);
                (void)worker_waits_for_others(waited);
        }
        return r;
}

/* Whether the container still has the volume, which has no device that says so: then a record of the former mount does. */
static int keep_former(struct removal *removal, struct error *error)
{
        const struct mount_record *record = &removal->record;
        struct state *state = &removal->state;

        if (!removal->reachable || mount_record_has_device(record))
                return 0;
        mount_record_wait_for_end(state, record, clock_now_ms() + MOUNT_RECORD_END_MS);
        removal->in_use = removal->lazily || removal->already
                                  ? mount_record_former_is_used(state, record, &removal->container)
                                  : mount_record_former_stays(state, record, &removal->container);
        return removal->in_use ? mount_record_write_former(state, record, error) : 0;
}

int removal_let_go(struct removal *removal, struct error *error)
{
        int r = 0;

        if (removal->record.volume[0] == '\0')
                return 0;
        if (removal->node_mnt_ns_fd >= 0)
                r = namespace_enter_mounts(removal->node_mnt_ns_fd, "node", error);
        if (r == 0)
                r = removal->request->releaser->let_go(removal->record.id, error);
        removal->in_use = removal->in_use || r > 0;
        return r != 0 ? (r < 0 ? r : 0) : keep_former(removal, error);
}

int removal_forget(struct removal *removal, struct error *error)
{
        const struct mount_record *record = &removal->record;

        mount_record_tidy_of(&removal->state, record);
        if (removal->in_use && record->removed)
                return 0; /* it stays until its device is free */
        return mount_record_remove_read(&removal->state, record, error);
}

void removal_release(struct removal *removal)
{
        if (removal->holds)
                removal->request->releaser->drop(); /* a worker that hangs has it, too */
        state_release(&removal->state);
        state_release(&removal->wishes);
        container_release(&removal->container);
        fd_close(&removal->node_mnt_ns_fd);
}

struct inheritance {
        struct state *state;
        const struct container *container;
        const struct mount_record *record;
        char kept[PATH_MAX]; /* the directory that is left */
        unsigned depth;      /* of the part that existed before */
        bool busy;           /* another call is at work on a mount there */
};

/* Whether a record's mount point is there: the call that removes its mount takes it away last. */
static bool is_there(const struct container *container, const struct mount_record *record)
{
        struct mount_seen seen;
        struct error ignored; /* where it cannot be seen, there is nothing to wait for */

        return target_see(container, record->mount_point, &seen, NULL, NULL, &ignored) == 0;
}

static int inherit(const struct mount_record *record, const char *id, void *argument, struct error *error)
{
        struct inheritance *inheritance = argument;
        const struct mount_record *from = inheritance->record;
        const char *kept = inheritance->kept;
        static struct mount_record other;

        if (record == NULL || record->removed || !container_same_namespace(&record->mnt_ns, &from->mnt_ns) ||
            strcmp(record->boot_id, from->boot_id) != 0 || !text_lies_in(record->mount_point, kept) ||
            /* the container made one between them */
            text_count(record->mount_point, '/') != text_count(kept, '/') + record->made)
                return 0;
        /* another call may just write it, or remove it */
        if (!state_try_lock(inheritance->state, mount_record_key(id))) {
                inheritance->busy = inheritance->busy || is_there(inheritance->container, record);
                return 0;
        }
        if (mount_record_read(inheritance->state, id, &other, error) < 0) {
                if (mount_record_key(id) != mount_record_key(from->id))
                        state_unlock(inheritance->state, mount_record_key(id));
                return 0;
        }
        other.made = (unsigned)text_count(other.mount_point, '/') - inheritance->depth;
        return mount_record_write(inheritance->state, &other, error) == 0;
}

int made_unmake(struct state *state, const struct container *container, const struct mount_record *record,
                bool *ret_busy, struct error *error)
{
        static struct inheritance inheritance;
        struct error ignored; /* then the directories stay */
        unsigned left;
        int r = target_unmake(container, record->mount_point, 0, record->made, /* made= */ NULL, &left, error);

        *ret_busy = false;
        if (r < 0 || left == 0)
                return r;
        inheritance.state = state;
        inheritance.container = container;
        inheritance.record = record;
        inheritance.busy = false;
        inheritance.depth = (unsigned)text_count(record->mount_point, '/') - record->made;
        (void)text_copy(inheritance.kept, sizeof inheritance.kept, record->mount_point);
        for (unsigned cut = record->made - left; cut > 0; cut--)
                *strrchr(inheritance.kept, '/') = '\0';
        if (mount_record_each_of(state, &record->mnt_ns, record->boot_id, record->id, inherit, &inheritance,
                                 &ignored) <= 0)
                *ret_busy = inheritance.busy;
        return 0;
}
