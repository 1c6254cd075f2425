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
        if (r == -ESRCH && mount_record_process_runs(record, rivals->except->boot_id)) {
                (void)snprintf(rivals->ret_name, CONTAINER_NAME_MAX, "pid %d", (int)record->pid);
                return 1;
        }
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

/* ---- the container of a record: which one it is, and whether it runs */

int mount_record_check_namespace(const struct mount_record *record, struct error *error)
{
        char boot_id[PROC_BOOT_ID_SIZE];
        uint64_t here = 0;
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

bool mount_record_process_runs(const struct mount_record *record, const char *boot_id)
{
        const struct container_reference process = { .pid = record->pid, .start_time = record->start_time };
        cleanup_container struct container found = CONTAINER_NONE;
        struct error ignored;
        int r;

        if (strcmp(record->boot_id, boot_id) != 0 || mount_record_check_namespace(record, &ignored) < 0)
                return false;
        r = container_pin(&process, &found, &ignored);
        return r != -ESRCH &&
               r != -EINVAL; /* EINVAL: it is in the node's mount namespace by now; what cannot be asked counts */
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
