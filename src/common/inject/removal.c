/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/removal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/fd.h"
#include "base/text.h"
#include "inject/raw_grant.h"
#include "mount/target.h"
#include "process/namespace.h"
#include "process/proc.h"
#include "state/config.h"

void removal_begin(struct removal *removal, const struct request *request)
{
        removal->request = request;
        removal->container = (struct container)CONTAINER_NONE;
        removal->state = (struct state)STATE_NONE;
        removal->node_mnt_ns_fd = -EBADF;
}

/* Whether this record is of a mount at the request's target: 1 and the mount is there, 0 and it is gone, or -ENOENT. */
static int match_target(struct removal *removal, const struct mount_record *record, const char *boot_id)
{
        const char *target = removal->request->target;
        enum placement placement;
        struct error ignored; /* a mount that cannot be looked for is not there */

        if ((strcmp(record->target, target) != 0 && strcmp(record->mount_point, target) != 0) ||
            !mount_record_is_of(record, &removal->container, boot_id))
                return -ENOENT;
        if (in_container_find(&removal->container, record->mount_point, &record->identity, &placement, &ignored) < 0)
                return 0;
        return placement != PLACEMENT_GONE;
}

static struct mount_record found; /* read last; static, for its size */

/* Gives removal->record, which keeps what the request said where the record cannot be read. */
static int read_record(struct removal *removal, const char *id, struct error *error)
{
        int r = mount_record_read(&removal->state, id, &found, error);

        if (r == 0)
                removal->record = found;
        return r;
}

struct search {
        struct removal *removal;
        const char *boot_id;
        int there; /* of the best record so far, as match_target() returns it */
};

static int match_any(const struct mount_record *record, const char *id, void *argument, struct error *error)
{
        struct search *search = argument;
        int r = record != NULL ? match_target(search->removal, record, search->boot_id) : -ENOENT;

        (void)id;
        (void)error; /* an unreadable record is not the one */
        if (r > 0 || (r == 0 && search->there < 0)) {
                search->removal->record = *record;
                search->there = r;
        }
        return search->there > 0;
}

/* The record of this target in this container, whatever its id; preferably one whose mount is there. */
static int find_by_target(struct removal *removal, const char *boot_id, struct error *error)
{
        struct search search = { .removal = removal, .boot_id = boot_id, .there = -ENOENT };
        char id[MOUNT_RECORD_ID_MAX];
        struct error ignored; /* an unreadable record is not the one */
        int r = 0;

        mount_record_default_id(&removal->container.mnt_ns, removal->request->target, id);
        if (mount_record_read(&removal->state, id, &found, &ignored) == 0)
                (void)match_any(&found, id, &search, &ignored);
        if (search.there <= 0)
                r = mount_record_each(&removal->state, match_any, &search, error);
        if (r < 0)
                return r;
        return search.there < 0 ? fail(error, ENOENT, "find record", removal->request->target) : 0;
}

static int lock_record(struct removal *removal, struct error *error)
{
        char target_id[MOUNT_RECORD_ID_MAX];
        uint64_t keys[2];
        int r;

        /* as in injection_claim() */
        mount_record_default_id(&removal->record.mnt_ns, removal->record.target, target_id);
        keys[0] = mount_record_key(target_id);
        keys[1] = mount_record_key(removal->record.id);
        r = state_lock(&removal->state, keys[keys[0] > keys[1]], error);
        if (r == 0 && keys[0] != keys[1])
                r = state_lock(&removal->state, keys[keys[0] <= keys[1]], error);
        return r;
}

/* Before the container's mount namespace is entered, which has another /proc. */
static int find_partner(struct removal *removal, const char *boot_id, struct error *error)
{
        int r = mount_record_find(&removal->state, &removal->container, boot_id, &removal->record.identity,
                                  /* by_root= */ true, removal->record.id, &removal->partner, error);

        if (r == -ENOENT && removal->record.replaces.id != 0) /* or the one that it replaces */
                r = mount_record_find(&removal->state, &removal->container, boot_id, &removal->record.replaces,
                                      /* by_root= */ true, removal->record.id, &removal->partner, error);
        if (r < 0)
                removal->partner.id[0] = '\0';
        return r == -ENOENT ? 0 : r;
}

int removal_find_record(struct removal *removal, struct error *error)
{
        const struct request *request = removal->request;
        char boot_id[PROC_BOOT_ID_SIZE];
        struct config config;
        int r = proc_boot_id(boot_id);

        if (r < 0)
                return fail(error, -r, "read", "boot_id");
        if (request->has_container && (r = container_pin(&request->container, &removal->container, error)) < 0)
                return r;
        removal->reachable = request->has_container;
        (void)text_copy(removal->record.target, sizeof removal->record.target, request->target);
        if (request->id != NULL)
                (void)text_copy(removal->record.id, sizeof removal->record.id, request->id);

        if ((r = config_load(&config, error)) < 0)
                return r;
        r = state_open(config.state_dir, "mounts", /* create= */ false, &removal->state, error);
        if (r == 0)
                r = request->id != NULL ? read_record(removal, request->id, error)
                                        : find_by_target(removal, boot_id, error);
        if (r == 0 && !request->dry_run && (r = lock_record(removal, error)) == 0) /* read again, under the lock */
                r = read_record(removal, removal->record.id, error);
        if (r == -ENOENT) {
                removal->already = true;
                return 0;
        }
        if (r == 0 && !request->has_container) {
                r = mount_record_reach(&removal->record, boot_id, &removal->container, error);
                removal->reachable = r == 0;
                if (r == -ESRCH)
                        return 0; /* its mounts are gone with it; only the record is left */
        }
        return r < 0 ? r : find_partner(removal, boot_id, error);
}

/* Unmounts the other mount of an interrupted replacement, if there is one. */
static int unplace_partner(struct removal *removal, struct error *error)
{
        const struct mount_record *record = &removal->partner;
        enum placement placement;
        int r;

        if (record->id[0] == '\0')
                return 0;
        r = in_container_find(&removal->container, record->mount_point, &record->identity, &placement, error);
        if (r < 0 || placement != PLACEMENT_PRESENT)
                return r;
        return in_container_remove(&removal->container, record->mount_point, &record->identity, /* lazily= */ true,
                                   error);
}

static int unplace(struct removal *removal, struct error *error)
{
        const struct mount_record *record = &removal->record;
        enum placement placement;
        bool lazily;
        int r;

        if (!removal->reachable) {
                removal->already = true;
                return 0;
        }
        if (record->raw_device != 0) {
                removal->node_mnt_ns_fd = namespace_open_own_mounts(error);
                if (removal->node_mnt_ns_fd < 0)
                        return removal->node_mnt_ns_fd;
        }
        if (record->replaces.id != 0) {
                /* interrupted replacement: the old mount covers the new one, or is the only one */
                r = in_container_find(&removal->container, record->mount_point, &record->replaces, &placement, error);
                if (r == 0 && placement == PLACEMENT_PRESENT)
                        r = in_container_remove(&removal->container, record->mount_point, &record->replaces,
                                                /* lazily= */ true, error);
                if (r < 0)
                        return r;
        }
        r = in_container_find(&removal->container, record->mount_point, &record->identity, &placement, error);
        if (r < 0)
                return r;
        if (placement == PLACEMENT_GONE) {
                removal->already = true;
                return 0;
        }
        lazily = removal->request->force;
        if (record->recursive && !lazily) {
                /* With mounts below, the kernel unmounts the whole tree or nothing: so all of them must have come with
                 * this mount. */
                unsigned below;

                r = in_container_count_below(&removal->container, record->mount_point, &below, error);
                if (r < 0)
                        return r;
                if (record->below != MOUNT_RECORD_NOT_COUNTED && below > record->below) {
                        (void)fail_because(error, EBUSY, "umount2", record->target,
                                           "the container has mounts of its own below it");
                        return error_where(error, removal->container.name);
                }
                lazily = below > 0;
        }
        return in_container_remove(&removal->container, record->mount_point, &record->identity, lazily, error);
}

int removal_forbid_device(struct removal *removal, struct error *error)
{
        const struct mount_record *record = &removal->record;

        const struct mount_record *partner = &removal->partner;
        cleanup_container struct container recorded = CONTAINER_NONE;
        const struct container *container = &recorded;
        struct error ignored;
        int r;

        if (partner->id[0] != '\0' && (r = mount_record_remove(&removal->state, partner->id, error)) < 0)
                return r;
        if (!removal->reachable || record->raw_device == 0)
                return 0;
        r = namespace_enter_mounts(removal->node_mnt_ns_fd, "node",
                                   error); /* whose /sys/fs/cgroup has the container's group */
        if (r < 0)
                return r;
        /* in the control group of the recorded process, if that still runs */
        if (mount_record_reach(record, record->boot_id, &recorded, &ignored) < 0)
                container = &removal->container;
        r = raw_grant_settle(&removal->state, container, record, /* included= */ false, error);
        if (r == 0 && partner->id[0] != '\0' && partner->raw_device != 0 && partner->raw_device != record->raw_device)
                r = raw_grant_settle(&removal->state, container, partner, /* included= */ false, error);
        return r < 0 ? r : raw_grant_settle_replaced(&removal->state, container, record, error);
}

int removal_unplace(struct removal *removal, struct error *error)
{
        int r = unplace(removal, error);

        return r < 0 || !removal->reachable ? r : unplace_partner(removal, error);
}

struct inheritance {
        const struct removal *removal;
        char kept[PATH_MAX]; /* the directory that is left */
        unsigned depth;      /* of the part that existed before */
};

static int inherit(const struct mount_record *record, const char *id, void *argument, struct error *error)
{
        const struct inheritance *inheritance = argument;
        const struct removal *removal = inheritance->removal;
        const char *kept = inheritance->kept;
        struct mount_record other;

        if (record == NULL || strcmp(id, removal->record.id) == 0 ||
            !container_same_namespace(&record->mnt_ns, &removal->record.mnt_ns) ||
            strcmp(record->boot_id, removal->record.boot_id) != 0 || !text_starts(record->mount_point, kept) ||
            record->mount_point[strlen(kept)] != '/')
                return 0;
        other = *record;
        other.made = (unsigned)text_count(other.mount_point, '/') - inheritance->depth;
        return mount_record_write(&removal->state, &other, error) == 0;
}

/*
 * Directories that flexgraft created for this mount may contain other mounts of flexgraft's. One of tother records then
 * takes the directories over, and its removal removes them.
 */
static void hand_over(struct removal *removal, unsigned left)
{
        const struct mount_record *record = &removal->record;
        struct inheritance inheritance = { .removal = removal,
                                           .depth = (unsigned)text_count(record->mount_point, '/') - record->made };
        struct error ignored; /* then the directories stay */

        (void)text_copy(inheritance.kept, sizeof inheritance.kept, record->mount_point);
        for (unsigned cut = record->made - left; cut > 0; cut--)
                *strrchr(inheritance.kept, '/') = '\0';
        (void)mount_record_each(&removal->state, inherit, &inheritance, &ignored);
}

int removal_unmake_target(struct removal *removal, struct error *error)
{
        struct mount_record *record = &removal->record;
        unsigned left;
        int r;

        if (!removal->reachable)
                return 0;
        /*
         * under this lock no other call creates or removes mount points; another removal may have handed us some before
         */
        r = state_lock(&removal->state, mount_record_tree_key(&record->mnt_ns), error);
        if (r == 0)
                r = mount_record_read(&removal->state, record->id, record, error);
        if (r < 0)
                return r;
        r = target_unmake(&removal->container, record->mount_point, 0, record->made, &left, error);
        if (r == 0 && left > 0)
                hand_over(removal, left);
        return r;
}

int removal_forget(struct removal *removal, struct error *error)
{
        mount_record_tidy(&removal->state);
        return mount_record_remove(&removal->state, removal->record.id, error);
}

void removal_release(struct removal *removal)
{
        state_release(&removal->state);
        container_release(&removal->container);
        fd_close(&removal->node_mnt_ns_fd);
}
