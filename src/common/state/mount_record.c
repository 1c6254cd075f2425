/* SPDX-License-Identifier: Apache-2.0 */
#include "state/mount_record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
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

void mount_record_pending_id(const char *id, char *ret_id)
{
        (void)snprintf(ret_id, MOUNT_RECORD_ID_MAX, "%s%c", id, MOUNT_RECORD_PENDING);
}

bool mount_record_is_pending(const char *id)
{
        return strchr(id, MOUNT_RECORD_PENDING) != NULL;
}

static size_t length_before_pending(const char *id)
{
        return strcspn(id, (const char[]){ MOUNT_RECORD_PENDING, '\0' });
}

void mount_record_settle_id(char *id)
{
        id[length_before_pending(id)] = '\0';
}

bool mount_record_same_id(const char *one, const char *other)
{
        size_t length = length_before_pending(one);

        return length == length_before_pending(other) && memcmp(one, other, length) == 0;
}

uint64_t mount_record_key(const char *id)
{
        return hash_bytes(HASH_SEED, id, length_before_pending(id));
}

size_t mount_record_lock_keys(const struct mount_record *record, uint64_t ret_keys[MOUNT_RECORD_LOCKS_MAX])
{
        char target_id[MOUNT_RECORD_ID_MAX];
        uint64_t of_target;
        uint64_t of_id = mount_record_key(record->id);

        mount_record_default_id(&record->mnt_ns, record->target, target_id);
        of_target = mount_record_key(target_id);
        ret_keys[0] = of_target < of_id ? of_target : of_id;
        ret_keys[1] = of_target < of_id ? of_id : of_target;
        return of_target == of_id ? 1 : 2;
}

uint64_t mount_record_tree_key(const struct namespace_identity *mnt_ns)
{
        return hash_bytes(HASH_SEED, mnt_ns, sizeof *mnt_ns);
}

/* Of a container, in this boot of the node. */
static uint64_t container_hash(const struct namespace_identity *mnt_ns, const char *boot_id)
{
        return hash_bytes(mount_record_tree_key(mnt_ns), boot_id, strlen(boot_id));
}

uint64_t mount_record_guard_key(const struct mount_record *record)
{
        return container_hash(&record->mnt_ns, record->boot_id);
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
        SPARSE(NUMBER, "pidNamespace", pid_ns, "pidNamespace", "inode of the pid namespace that pids are numbers of"),
        ALWAYS(NUMBER, "mountNamespace", mnt_ns.inode, "inode of the container's mount namespace"),
        ALWAYS(NUMBER, "mountNamespaceId", mnt_ns.id, "its id, which is never used again; 0 before Linux 6.11"),
        ALWAYS(NUMBER, "mountShortId", identity.short_id, "the mount's id in /proc/PID/mountinfo"),
        SPARSE(NUMBER, "rawDevice", raw_device, "rawDevice", "number of a raw device that the container may use"),
        SPARSE(NUMBER, "rawSource", raw_source, "rawSource",
               "number of the node's device; rawDevice is a loop device on it, made for the container"),
        SPARSE(BOOLEAN, "removed", removed, "removed",
               "whether the mount was removed or replaced; a process may still have the device or its files open"),
        SPARSE(BOOLEAN, "rawWrites", raw_writes, "rawWrites", "whether it may write to that device"),
        SPARSE(NUMBER, "rawBefore", raw_before, "rawBefore",
               "what its control group allowed of the device before: 1 read, 2 write"),
        SPARSE(NUMBER, "replacesRaw", replaces_raw, "replacesRaw", "rawDevice of the mount that is being replaced"),
        SPARSE(NUMBER, "replacesRawBefore", replaces_raw_before, "replacesRaw",
               "rawBefore of the mount that is being replaced"),
        SPARSE(NUMBER, "replacesRawSource", replaces_raw_source, "replacesRawSource",
               "rawSource of the mount that is being replaced"),
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
        SPARSE(NUMBER, "disk", disk, "disk", "number of the device of the node that it is of"),
        SPARSE(NUMBER, "diskSequence", disk_sequence, "diskSequence", "sequence number of that disk"),
        SPARSE(TEXT, "volume", volume, "volume", "name of the volume that mount-volume mounted"),
        SPARSE(TEXT, "wanted", wanted, "wanted", "name of the file of what is wanted in its container"),
        SPARSE(NUMBER, "since", since, "since", "when the mount was made, in seconds since 1970"),
        SPARSE(TEXT, "runtime", runtime, "runtime", "where the container's id was found"),
        SPARSE(TEXT, "uses", uses, "uses",
               "devices (b), files (f), volumes (w) and directories that it writes to (o): keys of the index"),
        SPARSE(TEXT, "replacesUses", replaces_uses, "replacesUses", "uses of the mount that is being replaced"),
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

void mount_record_uses_alone(const struct mount_record *record, char *ret_keys)
{
        (void)text_copy(ret_keys, USE_KEYS_SIZE, record->uses);
        if (record->uses[0] == '\0' && major(record->identity.device) != 0) /* of a version that wrote no "uses" */
                use_keys_add_device(ret_keys, record->identity.device);
        use_keys_add_device(ret_keys, record->raw_device);
        use_keys_add_device(ret_keys, record->raw_source);
}

void mount_record_uses(const struct mount_record *record, char *ret_keys)
{
        mount_record_uses_alone(record, ret_keys);
        use_keys_add_device(ret_keys, record->replaces_raw_source);
        use_keys_add_device(ret_keys, record->replaces_raw);
        if (record->replaces.id != 0)
                use_keys_add_all(ret_keys, record->replaces_uses);
}

void mount_record_wanted_name(const char *wanted, char ret_name[MOUNT_RECORD_WANTED_NAME_SIZE])
{
        (void)snprintf(ret_name, MOUNT_RECORD_WANTED_NAME_SIZE, "wanted/%.16s", wanted);
}

void mount_record_keys(const struct mount_record *record, char *ret_keys)
{
        char name[MOUNT_RECORD_WANTED_NAME_SIZE];
        char key[WISH_KEY_SIZE];

        mount_record_uses(record, ret_keys);
        use_keys_add_container(ret_keys, container_hash(&record->mnt_ns, record->boot_id));
        use_keys_add_container_id(ret_keys, record->container_id);
        wish_key(record->container_id, key);
        if (record->wanted[0] != '\0' &&
            strcmp(record->wanted, key) != 0) { /* it was named by another name than its id */
                mount_record_wanted_name(record->wanted, name);
                use_keys_add_container_id(ret_keys, name);
        }
        use_keys_add_process(ret_keys, record->pid);
}

static bool is_sound(const void *read_record)
{
        const struct mount_record *record = read_record;

        return record->pid > 0 && record->raw_before <= 3 && record->replaces_raw_before <= 3 &&
               record->mount_point[0] == '/' && record->made <= text_count(record->mount_point, '/');
}

const struct record_table mount_record_table = { .directory = "mounts",
                                                 .version = 1,
                                                 .size = sizeof(struct mount_record),
                                                 .name_offset = offsetof(struct mount_record, id),
                                                 .fields = fields,
                                                 .is_sound = is_sound,
                                                 .variant = MOUNT_RECORD_PENDING,
                                                 .flat = true };

static int set_aside(const struct state *state, const char *file, const char *id, struct error *error)
{
        char aside[STATE_ASIDE_SIZE];

        if (record_set_aside(state, &mount_record_table, file, id, aside))
                return fail_because(error, EBADMSG, OPERATION_READ_RECORD, id,
                                    "the record is damaged, or not a mount record; it was renamed to %s", aside);
        return fail_because(error, EBADMSG, OPERATION_READ_RECORD, id,
                            "the record was damaged, or not a mount record, and another call replaces it");
}

int mount_record_open(const char *state_dir, bool create, struct state *ret_state, struct error *error)
{
        uint64_t ignored; /* it is kept for mount_record_check_namespace() */
        int r = proc_pid_namespace(&ignored);

        if (r == -EXDEV)
                return fail_because(error, EXDEV, OPERATION_READ, "/proc",
                                    "/proc is of another pid namespace than this program: pids in it are others here");
        if (r < 0)
                return fail(error, -r, "read", "/proc/self");
        return state_open(state_dir, "mounts", create, ret_state, error);
}

int mount_record_read(const struct state *state, const char *id, struct mount_record *ret_record, struct error *error)
{
        char name[NAME_MAX + 1];
        int r;

        file_name(id, name);
        r = record_read(state, &mount_record_table, name, ret_record, error);
        if (r == -EBADMSG || (r == 0 && strcmp(ret_record->id, id) != 0))
                return set_aside(state, name, id, error);
        return r < 0 ? r : mount_record_check_namespace(ret_record, error);
}

/* Of the record on disk; "" where there is none, or a damaged one. */
static int read_keys(const struct state *state, const char *name, char *ret_keys, struct error *error)
{
        static struct mount_record record;
        int r = record_read(state, &mount_record_table, name, &record, error);

        ret_keys[0] = '\0';
        if (r == 0)
                mount_record_keys(&record, ret_keys);
        return r == -ENOENT || r == -EBADMSG ? 0 : r;
}

/* old: the keys of the record that it replaces; "" none. */
static int write_over(const struct state *state, const char *name, const char *old, const struct mount_record *record,
                      struct error *error)
{
        char keys[USE_KEYS_SIZE];
        int r;

        mount_record_keys(record, keys);
        if ((r = use_index_add(state, keys, USE_HOLDER_MOUNT, name, error)) < 0)
                return r;
        r = record_write(state, &mount_record_table, name, record->id, record, FILE_PLAIN, error);
        if (r == 0)
                use_index_drop_old(state, old, keys, USE_HOLDER_MOUNT, name);
        return r;
}

int mount_record_write(const struct state *state, const struct mount_record *record, struct error *error)
{
        char name[NAME_MAX + 1];
        char old[USE_KEYS_SIZE];
        int r;

        file_name(record->id, name);
        r = read_keys(state, name, old, error);
        return r < 0 ? r : write_over(state, name, old, record, error);
}

int mount_record_write_first(const struct state *state, const struct mount_record *record, struct error *error)
{
        char name[NAME_MAX + 1];

        file_name(record->id, name);
        return write_over(state, name, /* old= */ "", record, error);
}

static int remove_of_keys(const struct state *state, const char *id, const char *name, const char *keys,
                          struct error *error)
{
        int r = use_index_remove(state, keys, USE_HOLDER_MOUNT, name);

        return r < 0 ? fail(error, -r, "remove record", id) : 0;
}

int mount_record_remove(const struct state *state, const char *id, struct error *error)
{
        char name[NAME_MAX + 1];
        char keys[USE_KEYS_SIZE];
        int r;

        file_name(id, name);
        r = read_keys(state, name, keys, error);
        return r < 0 ? r : remove_of_keys(state, id, name, keys, error);
}

int mount_record_remove_read(const struct state *state, const struct mount_record *record, struct error *error)
{
        char name[NAME_MAX + 1];
        char keys[USE_KEYS_SIZE];

        file_name(record->id, name);
        mount_record_keys(record, keys);
        return remove_of_keys(state, record->id, name, keys, error);
}

struct walk {
        const struct state *state;
        mount_record_function *function;
        void *argument;
        const char *except; /* an id that is passed over; or NULL */
};

/* Whether a file is that of the record that is passed over. */
static bool is_exception(const struct walk *walk, const char *file)
{
        const size_t length = walk->except != NULL ? strlen(walk->except) : 0;

        return length > 0 && strncmp(file, walk->except, length) == 0 && strcmp(file + length, RECORD_SUFFIX) == 0;
}

static int pass_on(void *record, const char *file, void *argument, struct error *error)
{
        const struct walk *walk = argument;
        const struct mount_record *read = record;
        char id[MOUNT_RECORD_ID_MAX];

        if (strlen(file) - strlen(RECORD_SUFFIX) >= sizeof id || is_exception(walk, file))
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

static int pass_on_entry(const char *key, char sort, const char *file, void *argument, struct error *error)
{
        struct mount_record record;
        struct walk *walk = argument;

        (void)key;
        return sort == USE_HOLDER_MOUNT && !is_exception(walk, file)
                       ? record_pass(walk->state, &mount_record_table, file, &record, pass_on, argument, error)
                       : 0;
}

/* Those of one key, but for the record that is passed over. */
static int each_with(const struct state *state, const char *key, const char *except, mount_record_function *function,
                     void *argument, struct error *error)
{
        struct walk walk = { .state = state, .function = function, .argument = argument, .except = except };
        struct mount_record record;

        return use_index_is_complete(state->dir_fd, USE_HOLDERS_OF_USES)
                       ? use_index_each(state->dir_fd, key, pass_on_entry, &walk, error)
                       : record_each(state, &mount_record_table, &record, pass_on, &walk, error);
}

int mount_record_each_with(const struct state *state, const char *key, mount_record_function *function, void *argument,
                           struct error *error)
{
        return each_with(state, key, /* except= */ NULL, function, argument, error);
}

int mount_record_each_of(const struct state *state, const struct namespace_identity *mnt_ns, const char *boot_id,
                         const char *except, mount_record_function *function, void *argument, struct error *error)
{
        char key[USE_KEYS_SIZE];

        key[0] = '\0';
        use_keys_add_container(key, container_hash(mnt_ns, boot_id));
        return each_with(state, key, except, function, argument, error);
}

int mount_record_each_called(const struct state *state, const char *container_id, mount_record_function *function,
                             void *argument, struct error *error)
{
        char key[USE_KEYS_SIZE] = "";

        use_keys_add_container_id(key, container_id);
        return mount_record_each_with(state, key, function, argument, error);
}

int mount_record_each_of_process(const struct state *state, pid_t pid, mount_record_function *function, void *argument,
                                 struct error *error)
{
        char key[USE_KEYS_SIZE] = "";

        use_keys_add_process(key, pid);
        return mount_record_each_with(state, key, function, argument, error);
}

int mount_record_unread(const struct error *error)
{
        return error->errnum == EBADMSG || error->errnum == EPROTONOSUPPORT ? 0 : error_negative(error->errnum);
}

void mount_record_tidy(struct state *state)
{
        record_tidy(state, &mount_record_table);
}

bool mount_record_remap_lives(struct state *state, uint64_t key)
{
        return !state_is_free(state, key);
}

bool mount_record_is_above(const struct mount_record *record, const char *path)
{
        return strcmp(record->mount_point, path) != 0 && text_lies_in(path, record->mount_point);
}
