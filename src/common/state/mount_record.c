/* SPDX-License-Identifier: Apache-2.0 */
#include "state/mount_record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/text.h"

void mount_record_default_id(const struct namespace_identity *mnt_ns, const char *target, char *ret_id)
{
        uint64_t hash = hash_bytes(HASH_SEED, mnt_ns, sizeof *mnt_ns);
        const char *name = strrchr(target, '/') + 1;
        size_t length = 0;

        hash = hash_bytes(hash, target, strlen(target));
        for (; *name != '\0' && length < 32; name++)
                if ((*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z') || (*name >= '0' && *name <= '9'))
                        ret_id[length++] = *name;
        (void)snprintf(ret_id + length, MOUNT_RECORD_ID_MAX - length, "%s%016llx", length > 0 ? "-" : "",
                       (unsigned long long)hash);
}

bool mount_record_id_derived(const char *id)
{
        size_t length = strlen(id);

        return length >= 16 && strspn(id + length - 16, "0123456789abcdef") == 16 &&
               (length == 16 || id[length - 17] == '-');
}

uint64_t mount_record_key(const char *id)
{
        return hash_bytes(HASH_SEED, id, strlen(id));
}

uint64_t mount_record_tree_key(const struct namespace_identity *mnt_ns)
{
        return hash_bytes(HASH_SEED, mnt_ns, sizeof *mnt_ns);
}

static void file_name(const char *id, char *ret_name)
{
        (void)snprintf(ret_name, NAME_MAX + 1, "%s" RECORD_SUFFIX, id); /* an id is at most 128 bytes */
}

/* The order of the rows is that of the keys in the file; keep it, and records stay the same byte for byte. */
static const struct record_field fields[] = {
#define ROW(type, key, field, help, ...) RECORD_ROW(RECORD_##type, key, struct mount_record, field, help, __VA_ARGS__)
#define ALWAYS(type, key, field, help) ROW(type, key, field, help, .with = NULL)
#define INSTEAD(type, key, field, other, help) ROW(type, key, field, help, .instead = (other))
#define OPTIONAL(type, key, field, help) ROW(type, key, field, help, .optional = true)
#define SPARSE(type, key, field, other, help) ROW(type, key, field, help, .optional = true, .with = (other))
        OPTIONAL(BOOLEAN, "mountIdUnique", identity.unique, "whether mountId is never used again, as since Linux 6.8"),
        OPTIONAL(BOOLEAN, "recursive", recursive, "whether the mounts below the source came with it"),
        ALWAYS(NUMBER, "below", below, "how many they are; 4294967295: not counted"),
        ALWAYS(NUMBER, "mountId", identity.id, "the mount's id"),
        ALWAYS(NUMBER, "device", identity.device, "device of the mount's root"),
        ALWAYS(NUMBER, "inode", identity.inode, "inode of the mount's root"),
        ALWAYS(NUMBER, "made", made, "how many of mountPoint's last components flexgraft made"),
        ALWAYS(NUMBER, "digest", digest, "hash of the request, to know it again"),
        ALWAYS(NUMBER, "pid", pid, "a process of the container"),
        ALWAYS(NUMBER, "startTime", start_time, "when that process started"),
        ALWAYS(NUMBER, "mountNamespace", mnt_ns.inode, "inode of the container's mount namespace"),
        ALWAYS(NUMBER, "mountNamespaceId", mnt_ns.id, "its id, which is never used again; 0 before Linux 6.11"),
        ALWAYS(NUMBER, "mountShortId", identity.short_id, "the mount's id in /proc/PID/mountinfo"),
        SPARSE(NUMBER, "rawDevice", raw_device, "rawDevice", "number of a raw device that the container may use"),
        SPARSE(BOOLEAN, "rawWrites", raw_writes, "rawWrites", "whether it may write to that device"),
        SPARSE(NUMBER, "rawBefore", raw_before, "rawBefore",
               "what its control group allowed of the device before: 1 read, 2 write"),
        SPARSE(NUMBER, "replacesRaw", replaces_raw, "replacesRaw", "rawDevice of the mount that is being replaced"),
        SPARSE(NUMBER, "replacesRawBefore", replaces_raw_before, "replacesRaw",
               "rawBefore of the mount that is being replaced"),
        SPARSE(NUMBER, "fromPid", from_pid, "fromPid", "a process of the container that the source is in"),
        SPARSE(TEXT, "fromId", from_id, "fromId", "id of the container that the source is in"),
        SPARSE(TEXT, "nfsVersion", server_version, "nfsVersion", "NFS version in use"),
        SPARSE(TEXT, "nfsAddress", server_address, "nfsAddress", "address of the NFS server"),
        SPARSE(NUMBER, "translatorKey", remap_key, "translatorKey",
               "lock that the mount's remap daemon holds while it runs"),
        SPARSE(NUMBER, "translatorPid", remap_pid, "translatorKey", "process of the remap daemon"),
        SPARSE(BOOLEAN, "replacesUnique", replaces.unique, "replacesId",
               "mountIdUnique of the mount that is being replaced"),
        SPARSE(NUMBER, "replacesId", replaces.id, "replacesId", "mountId of the mount that is being replaced"),
        SPARSE(NUMBER, "replacesDevice", replaces.device, "replacesId", "device of the mount that is being replaced"),
        SPARSE(NUMBER, "replacesInode", replaces.inode, "replacesId", "inode of the mount that is being replaced"),
        ALWAYS(TEXT, "id", id, "the record's id, and its file's name"),
        ALWAYS(TEXT, "type", type, "type of the filesystem"),
        ALWAYS(TEXT, "source", source, "source as it was requested"),
        INSTEAD(TEXT, "origin", origin, "source", "path or device of the node that it came from, links resolved"),
        ALWAYS(TEXT, "target", target, "target as it was requested"),
        INSTEAD(TEXT, "mountPoint", mount_point, "target", "target with the container's symbolic links resolved"),
        ALWAYS(TEXT, "options", options, "options of the mount"),
        ALWAYS(TEXT, "idMapping", id_mapping, "idMapping in use"),
        ALWAYS(TEXT, "containerId", container_id, "id of the container; may be empty"),
        ALWAYS(TEXT, "bootId", boot_id, "boot id of the node"),
        {},
#undef ROW
#undef ALWAYS
#undef INSTEAD
#undef OPTIONAL
#undef SPARSE
};

static bool is_sound(const void *read_record)
{
        const struct mount_record *record = read_record;

        return record->pid > 0 && record->raw_before <= 3 && record->replaces_raw_before <= 3 &&
               record->mount_point[0] == '/' && record->made <= text_count(record->mount_point, '/');
}

const struct record_table mount_record_table = {
        .directory = "mounts", .version = 1, .size = sizeof(struct mount_record), .fields = fields, .is_sound = is_sound
};

static int set_aside(const struct state *state, const char *file, const char *id, struct error *error)
{
        char aside[STATE_ASIDE_SIZE];

        state_set_aside(state, file, aside);
        return fail_because(error, EBADMSG, "read record", id,
                            "the record is damaged, or not a mount record; it was renamed to %s", aside);
}

int mount_record_read(const struct state *state, const char *id, struct mount_record *ret_record, struct error *error)
{
        char name[NAME_MAX + 1];
        int r;

        file_name(id, name);
        r = record_read(state, &mount_record_table, name, ret_record, error);
        return r == -EBADMSG || (r == 0 && strcmp(ret_record->id, id) != 0) ? set_aside(state, name, id, error) : r;
}

int mount_record_write(const struct state *state, const struct mount_record *record, struct error *error)
{
        char name[NAME_MAX + 1];

        file_name(record->id, name);
        return record_write(state, &mount_record_table, name, record->id, record, FILE_PLAIN, error);
}

int mount_record_remove(const struct state *state, const char *id, struct error *error)
{
        char name[NAME_MAX + 1];
        int r;

        file_name(id, name);
        r = state_remove(state, name);
        return r < 0 ? fail(error, -r, "remove record", id) : 0;
}

struct walk {
        const struct state *state;
        mount_record_function *function;
        void *argument;
};

static int pass_on(void *record, const char *file, void *argument, struct error *error)
{
        const struct walk *walk = argument;
        const struct mount_record *read = record;
        char id[MOUNT_RECORD_ID_MAX];

        if (strlen(file) - strlen(RECORD_SUFFIX) >= sizeof id)
                return 0; /* no record has such a name */
        (void)text_copy(id, strlen(file) - strlen(RECORD_SUFFIX) + 1, file);
        if (read != NULL ? strcmp(read->id, id) != 0 : error->errnum == EBADMSG) {
                (void)set_aside(walk->state, file, id, error);
                read = NULL;
        }
        return walk->function(read, id, walk->argument, error);
}

int mount_record_each(const struct state *state, mount_record_function *function, void *argument, struct error *error)
{
        struct walk walk = { .state = state, .function = function, .argument = argument };
        struct mount_record record;

        return record_each(state, &mount_record_table, &record, pass_on, &walk, error);
}

void mount_record_tidy(struct state *state)
{
        static const char suffix[] = RECORD_SUFFIX ".tmp";
        DIR *list = state_list(state);
        const struct dirent *entry;

        while (list != NULL && (entry = readdir(list)) != NULL) {
                size_t length = strlen(entry->d_name);
                char id[MOUNT_RECORD_ID_MAX];

                if (entry->d_name[0] != '.' || length <= strlen(suffix) + 1 || length - strlen(suffix) > sizeof id ||
                    strcmp(entry->d_name + length - strlen(suffix), suffix) != 0)
                        continue;
                (void)text_copy(id, length - strlen(suffix), entry->d_name + 1);
                if (state_try_lock(state, mount_record_key(id)))         /* no process works on it */
                        (void)unlinkat(state->dir_fd, entry->d_name, 0); /* else the next tidying does */
        }
        if (list != NULL)
                (void)closedir(list);
}

bool mount_record_is_of(const struct mount_record *record, const struct container *container, const char *boot_id)
{
        const struct container_reference process = { .pid = record->pid, .start_time = record->start_time };
        cleanup_container struct container recorded = CONTAINER_NONE;
        struct error ignored;

        if (!container_same_namespace(&record->mnt_ns, &container->mnt_ns) || strcmp(record->boot_id, boot_id) != 0)
                return false;
        return record->mnt_ns.id != 0 ||
               (container_pin(&process, &recorded, &ignored) == 0 && recorded.mnt_ns.inode == container->mnt_ns.inode);
}

int mount_record_reach(const struct mount_record *record, const char *boot_id, struct container *ret_container,
                       struct error *error)
{
        const struct container_reference process = { .pid = record->pid, .start_time = record->start_time };
        int r;

        if (strcmp(record->boot_id, boot_id) != 0)
                return fail_because(error, ESRCH, "pin container", record->id, "the node has been rebooted since");
        r = container_pin(&process, ret_container, error);
        if (r == 0 && !container_same_namespace(&ret_container->mnt_ns, &record->mnt_ns)) {
                container_release(ret_container);
                r = -ESRCH;
        }
        if (r == -ESRCH && record->mnt_ns.id != 0) /* inode numbers are used again: they prove nothing */
                r = container_pin_namespace(&record->mnt_ns, ret_container, error);
        if (r == 0 && record->container_id[0] != '\0') {
                (void)text_copy(ret_container->id, sizeof ret_container->id, record->container_id);
                (void)text_copy(ret_container->name, sizeof ret_container->name, record->container_id);
        }
        return r;
}

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

        (void)error; /* a record that cannot be read is not the one */
        if (record == NULL || text_same(id, sought->except) || !sought->matches(record, sought) ||
            !mount_record_is_of(record, sought->container, sought->boot_id))
                return 0;
        *sought->ret_record = *record;
        return 1;
}

static int find(const struct state *state, struct sought *sought, struct error *error)
{
        int r = mount_record_each(state, match, sought, error);

        return r < 0 ? r : r > 0 ? 0 : -ENOENT;
}

static bool is_of_mount(const struct mount_record *record, const struct sought *sought)
{
        return is_mount(&record->identity, sought->identity, sought->by_root) ||
               is_mount(&record->replaces, sought->identity, sought->by_root);
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

int mount_record_find_replacing(const struct state *state, const struct container *container, const char *boot_id,
                                const struct mount_identity *identity, struct mount_record *ret_record,
                                struct error *error)
{
        struct sought sought = { container,          boot_id,       identity,  /* by_root= */ true,
                                 /* except= */ NULL, is_to_replace, ret_record };

        return find(state, &sought, error);
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

        /* a record that cannot be read, or whose container is gone, is no rival */
        if (record == NULL || strcmp(id, rivals->except->id) == 0 || !rivals->matches(record, rivals->argument) ||
            mount_record_reach(record, rivals->except->boot_id, &holder, error) < 0)
                return 0;
        (void)text_copy(rivals->ret_name, CONTAINER_NAME_MAX, holder.name);
        return 1;
}

int mount_record_find_live(const struct state *state, const struct mount_record *except, mount_record_match *matches,
                           const void *argument, char *ret_name, struct error *error)
{
        struct rivals rivals = { except, matches, argument, ret_name };
        int r = mount_record_each(state, match_live, &rivals, error);

        return r < 0 ? r : r > 0 ? 0 : -ENOENT;
}

bool mount_record_remap_lives(struct state *state, uint64_t key)
{
        return !state_is_free(state, key);
}
