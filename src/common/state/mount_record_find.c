/* SPDX-License-Identifier: Apache-2.0 */
/* mount_record_find.c - records by what they are of: a mount, a container that is running. */
#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "state/mount_record.h"

static bool is_mount(const struct mount_identity *recorded, const struct mount_identity *seen, bool by_root)
{
        struct mount_identity same = *recorded;

        if (!by_root)
                same.inode = seen->inode;
        return recorded->id != 0 && mount_identity_same(&same, seen);
}

/* What to look for among the records of a container. */
struct sought {
        const struct container *container;
        const char *boot_id;
        const struct mount_identity *identity;
        bool by_root;
        const char *except;
        bool (*matches)(const struct mount_record *record, const struct sought *sought);
        struct mount_record *ret_record;
};

static int match(const struct mount_record *record, const char *id, void *argument, struct error *error)
{
        const struct sought *sought = argument;
        int r;

        (void)id;
        if (record == NULL)
                return mount_record_unread(error); /* one that is damaged is not the one */
        if (record->removed || !sought->matches(record, sought) ||
            !mount_record_is_of(record, sought->container, sought->boot_id))
                return 0;
        if ((r = mount_record_check_namespace(record, error)) < 0)
                return r;
        *sought->ret_record = *record;
        return 1;
}

static int find(const struct state *state, struct sought *sought, struct error *error)
{
        int r = mount_record_each_of(state, &sought->container->mnt_ns, sought->boot_id, sought->except, match, sought,
                                     error);

        return r < 0 ? r : r > 0 ? 0 : -ENOENT;
}

static bool is_of_mount(const struct mount_record *record, const struct sought *sought)
{
        return is_mount(&record->identity, sought->identity, sought->by_root) ||
               is_mount(&record->replaces, sought->identity, sought->by_root);
}

static bool is_placed(const struct mount_record *record, const struct sought *sought)
{
        return is_mount(&record->identity, sought->identity, sought->by_root);
}

static bool is_to_replace(const struct mount_record *record, const struct sought *sought)
{
        return is_mount(&record->replaces, sought->identity, sought->by_root);
}

int mount_record_find(const struct state *state, const struct container *container, const char *boot_id,
                      const struct mount_identity *identity, bool by_root, const char *except,
                      struct mount_record *ret_record, struct error *error)
{
        struct sought sought = { container, boot_id, identity, by_root, except, is_of_mount, ret_record };

        return find(state, &sought, error);
}

int mount_record_find_placed(const struct state *state, const struct container *container, const char *boot_id,
                             const struct mount_identity *identity, const char *except, struct mount_record *ret_record,
                             struct error *error)
{
        struct sought sought = { container, boot_id, identity, /* by_root= */ true, except, is_placed, ret_record };

        return find(state, &sought, error);
}

int mount_record_find_replacing(const struct state *state, const struct container *container, const char *boot_id,
                                const struct mount_identity *identity, struct mount_record *ret_record,
                                struct error *error)
{
        struct sought sought = { container,          boot_id,       identity,  /* by_root= */ true,
                                 /* except= */ NULL, is_to_replace, ret_record };

        return find(state, &sought, error);
}

static int tidy_entry(const char *key, char sort, const char *file, void *argument, struct error *error)
{
        struct state *state = argument;

        (void)key;
        (void)error;
        if (sort == USE_HOLDER_MOUNT)
                record_tidy_file(state, &mount_record_table, file);
        return 0;
}

void mount_record_tidy_of(struct state *state, const struct mount_record *record)
{
        char key[USE_KEYS_SIZE] = "";
        struct error ignored; /* what stays, volume-reconcile removes */

        use_keys_add_container(key, mount_record_guard_key(record));
        (void)use_index_each(state->dir_fd, key, tidy_entry, state, &ignored);
}

void mount_record_tidy_called(struct state *state, const char *container_id)
{
        char key[USE_KEYS_SIZE] = "";
        struct error ignored; /* as above */

        use_keys_add_container_id(key, container_id);
        (void)use_index_each(state->dir_fd, key, tidy_entry, state, &ignored);
}

struct rivals {
        const struct mount_record *except;
        mount_record_match *matches;
        const void *argument;
        char *ret_name;
};

static int match_live(const struct mount_record *record, const char *id, void *argument, struct error *error)
{
        const struct rivals *rivals = argument;
        cleanup_container struct container holder = CONTAINER_NONE;
        int r;

        /* a record that is damaged, or whose container is gone, is no rival */
        if (record == NULL)
                return mount_record_unread(error);
        if (mount_record_same_id(id, rivals->except->id) || !rivals->matches(record, rivals->argument))
                return 0;
        r = mount_record_reach(record, rivals->except->boot_id, &holder, error);
        if (r < 0)
                return r == -ESRCH ? 0 : r;
        (void)text_copy(rivals->ret_name, CONTAINER_NAME_MAX, holder.name);
        return 1;
}

int mount_record_find_live(const struct state *state, const char *key, const struct mount_record *except,
                           mount_record_match *matches, const void *argument, char *ret_name, struct error *error)
{
        struct rivals rivals = { except, matches, argument, ret_name };
        int r = mount_record_each_with(state, key, match_live, &rivals, error);

        return r < 0 ? r : r > 0 ? 0 : -ENOENT;
}
