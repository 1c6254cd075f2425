/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/made.h"

#include <string.h>

#include "base/text.h"
#include "mount/target.h"

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
            strcmp(record->boot_id, from->boot_id) != 0 || !text_lies_in(record->mount_point, kept))
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
        int r = target_unmake(container, record->mount_point, 0, record->made, &left, error);

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
