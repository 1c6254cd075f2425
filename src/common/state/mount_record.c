/* SPDX-License-Identifier: Apache-2.0 */
#include "state/mount_record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"

#define RECORD_VERSION 1
#define SUFFIX ".json"

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
        (void)snprintf(ret_name, NAME_MAX + 1, "%s" SUFFIX, id); /* an id is at most 128 bytes */
}

/* The one table of a record's strings. */
static const struct {
        const char *member;
        size_t offset;
        size_t size;
} strings[] = {
#define STRING(member, field)                                                                                          \
        {                                                                                                              \
                member, offsetof(struct mount_record, field), sizeof((struct mount_record *)0)->field                  \
        }
        STRING("id", id),
        STRING("type", type),
        STRING("source", source),
        STRING("origin", origin),
        STRING("target", target),
        STRING("mountPoint", mount_point),
        STRING("options", options),
        STRING("idMapping", id_mapping),
        STRING("containerId", container_id),
        STRING("bootId", boot_id),
#undef STRING
};

static bool get_number(const json_t *object, const char *member, uint64_t *ret_number)
{
        const json_t *value = json_object_get(object, member);

        *ret_number = (uint64_t)json_integer_value(value);
        return json_is_integer(value);
}

/* A number that is there only in some records. */
static uint64_t optional_number(const json_t *object, const char *member)
{
        return (uint64_t)json_integer_value(json_object_get(object, member));
}

static void optional_text(const json_t *object, const char *member, char *ret_text, size_t size)
{
        const char *text = json_string_value(json_object_get(object, member));

        (void)text_copy(ret_text, size, text != NULL ? text : "");
}

static void optional_from_json(const json_t *object, struct mount_record *ret_record)
{
        ret_record->raw_device = optional_number(object, "rawDevice");
        ret_record->raw_writes = json_is_true(json_object_get(object, "rawWrites"));
        ret_record->raw_before = (unsigned)optional_number(object, "rawBefore") & 3U;
        ret_record->replaces_raw = optional_number(object, "replacesRaw");
        ret_record->replaces_raw_before = (unsigned)optional_number(object, "replacesRawBefore") & 3U;
        ret_record->from_pid = (pid_t)optional_number(object, "fromPid");
        optional_text(object, "fromId", ret_record->from_id, sizeof ret_record->from_id);
        optional_text(object, "nfsVersion", ret_record->nfs_version, sizeof ret_record->nfs_version);
        optional_text(object, "nfsAddress", ret_record->nfs_address, sizeof ret_record->nfs_address);
        ret_record->translator_key = optional_number(object, "translatorKey");
        ret_record->translator_pid = (int)optional_number(object, "translatorPid");
        ret_record->replaces = (struct mount_identity){
                .unique = json_is_true(json_object_get(object, "replacesUnique")),
                .id = optional_number(object, "replacesId"),
                .device = optional_number(object, "replacesDevice"),
                .inode = optional_number(object, "replacesInode"),
        };
}

static int optional_to_json(json_t *object, const struct mount_record *record)
{
        int r = 0;

        if (record->raw_device != 0)
                r = json_object_set_new(object, "rawDevice", json_integer((json_int_t)record->raw_device));
        if (r == 0 && record->raw_writes)
                r = json_object_set_new(object, "rawWrites", json_true());
        if (r == 0 && record->raw_before != 0)
                r = json_object_set_new(object, "rawBefore", json_integer(record->raw_before));
        if (r == 0 && record->replaces_raw != 0)
                r = json_object_set_new(object, "replacesRaw", json_integer((json_int_t)record->replaces_raw));
        if (r == 0 && record->replaces_raw != 0)
                r = json_object_set_new(object, "replacesRawBefore", json_integer(record->replaces_raw_before));
        if (r == 0 && record->from_pid != 0)
                r = json_object_set_new(object, "fromPid", json_integer(record->from_pid));
        if (r == 0 && record->from_id[0] != '\0')
                r = json_object_set_new(object, "fromId", json_string(record->from_id));
        if (r == 0 && record->nfs_version[0] != '\0')
                r = json_object_set_new(object, "nfsVersion", json_string(record->nfs_version));
        if (r == 0 && record->nfs_address[0] != '\0')
                r = json_object_set_new(object, "nfsAddress", json_string(record->nfs_address));
        if (r == 0 && record->translator_key != 0)
                r = json_object_set_new(object, "translatorKey", json_integer((json_int_t)record->translator_key));
        if (r == 0 && record->translator_key != 0)
                r = json_object_set_new(object, "translatorPid", json_integer(record->translator_pid));
        if (r < 0 || record->replaces.id == 0)
                return r;
        if (json_object_set_new(object, "replacesUnique", json_boolean(record->replaces.unique)) < 0 ||
            json_object_set_new(object, "replacesId", json_integer((json_int_t)record->replaces.id)) < 0 ||
            json_object_set_new(object, "replacesDevice", json_integer((json_int_t)record->replaces.device)) < 0)
                return -1;
        return json_object_set_new(object, "replacesInode", json_integer((json_int_t)record->replaces.inode));
}

static bool from_json(const json_t *object, struct mount_record *ret_record)
{
        uint64_t made;
        uint64_t below;
        uint64_t pid;

        for (size_t i = 0; i < sizeof strings / sizeof strings[0]; i++) {
                const char *value = json_string_value(json_object_get(object, strings[i].member));

                if (value == NULL || !text_copy((char *)ret_record + strings[i].offset, strings[i].size, value))
                        return false;
        }
        ret_record->identity.unique = json_is_true(json_object_get(object, "mountIdUnique"));
        ret_record->recursive = json_is_true(json_object_get(object, "recursive"));
        if (!get_number(object, "below", &below) || below > UINT_MAX || !get_number(object, "made", &made) ||
            made > PATH_MAX || !get_number(object, "pid", &pid) || !get_number(object, "digest", &ret_record->digest) ||
            !get_number(object, "mountId", &ret_record->identity.id) ||
            !get_number(object, "device", &ret_record->identity.device) ||
            !get_number(object, "inode", &ret_record->identity.inode) ||
            !get_number(object, "startTime", &ret_record->start_time) ||
            !get_number(object, "mountNamespace", &ret_record->mnt_ns.inode) ||
            !get_number(object, "mountNamespaceId", &ret_record->mnt_ns.id) ||
            !get_number(object, "mountShortId", &ret_record->identity.short_id) || pid == 0 || pid > INT_MAX)
                return false;
        ret_record->made = (unsigned)made;
        ret_record->below = (unsigned)below;
        ret_record->pid = (pid_t)pid;
        optional_from_json(object, ret_record);
        return ret_record->mount_point[0] == '/' && made <= text_count(ret_record->mount_point, '/');
}

static json_t *to_json(const struct mount_record *record)
{
        json_t *object = json_pack(
                "{s:i, s:b, s:b, s:I, s:I, s:I, s:I, s:i, s:I, s:i, s:I, s:I, s:I, s:I}", "version", RECORD_VERSION,
                "mountIdUnique", record->identity.unique, "recursive", record->recursive, "below",
                (json_int_t)record->below, "mountId", (json_int_t)record->identity.id, "device",
                (json_int_t)record->identity.device, "inode", (json_int_t)record->identity.inode, "made",
                (int)record->made, "digest", (json_int_t)record->digest, "pid", (int)record->pid, "startTime",
                (json_int_t)record->start_time, "mountNamespace", (json_int_t)record->mnt_ns.inode, "mountNamespaceId",
                (json_int_t)record->mnt_ns.id, "mountShortId", (json_int_t)record->identity.short_id);

        if (object != NULL && optional_to_json(object, record) < 0) {
                json_decref(object);
                object = NULL;
        }
        for (size_t i = 0; object != NULL && i < sizeof strings / sizeof strings[0]; i++) {
                json_t *value = json_string((const char *)record + strings[i].offset);

                if (value == NULL) /* the kernel's name for a path may be no UTF-8; then as it was asked for */
                        value = json_string(strings[i].offset == offsetof(struct mount_record, mount_point)
                                                    ? record->target
                                                    : record->source);
                if (json_object_set_new(object, strings[i].member, value) < 0) {
                        json_decref(object);
                        object = NULL;
                }
        }
        return object;
}

int mount_record_read(const struct state *state, const char *id, struct mount_record *ret_record, struct error *error)
{
        cleanup_json json_t *object = NULL;
        char name[NAME_MAX + 1];
        char aside[STATE_ASIDE_SIZE];
        uint64_t version;
        int r;

        file_name(id, name);
        r = json_file_load(state->dir_fd, name, JSON_OBJECT, &object, error);
        if (r < 0 && r != -EBADMSG && r != -EFBIG)
                return r;
        if (r == 0 && get_number(object, "version", &version) && version != RECORD_VERSION)
                return fail_because(error, EPROTONOSUPPORT, "read record", id,
                                    "the record is of version %llu, and this program understands version %d",
                                    (unsigned long long)version, RECORD_VERSION);
        *ret_record = (struct mount_record){};
        if (r == 0 && from_json(object, ret_record) && strcmp(ret_record->id, id) == 0)
                return 0;
        state_set_aside(state, name, aside);
        return fail_because(error, EBADMSG, "read record", id, "the record is torn or not ours; it was set aside as %s",
                            aside);
}

int mount_record_write(const struct state *state, const struct mount_record *record, struct error *error)
{
        cleanup_json json_t *object = to_json(record);
        char name[NAME_MAX + 1];
        int r;

        file_name(record->id, name);
        r = json_file_replace(state->dir_fd, name, object, FILE_PLAIN);
        return r < 0 ? fail(error, -r, "write record", record->id) : 0;
}

int mount_record_remove(const struct state *state, const char *id, struct error *error)
{
        char name[NAME_MAX + 1];
        int r;

        file_name(id, name);
        r = state_remove(state, name);
        return r < 0 ? fail(error, -r, "remove record", id) : 0;
}

void *mount_record_list(const struct state *state, struct error *error)
{
        DIR *directory = state_list(state);

        if (directory == NULL)
                (void)fail(error, errno, "open state", "mounts");
        return directory;
}

bool mount_record_next(void *directory, char *ret_id)
{
        const struct dirent *entry;

        while ((entry = readdir(directory)) != NULL) {
                size_t length = strlen(entry->d_name);

                if (entry->d_name[0] == '.' || length <= strlen(SUFFIX) ||
                    length - strlen(SUFFIX) >= MOUNT_RECORD_ID_MAX ||
                    strcmp(entry->d_name + length - strlen(SUFFIX), SUFFIX) != 0)
                        continue;
                (void)text_copy(ret_id, length - strlen(SUFFIX) + 1, entry->d_name);
                return true;
        }
        return false;
}

void mount_record_tidy(struct state *state, void *directory)
{
        static const char suffix[] = SUFFIX ".tmp";
        const struct dirent *entry;

        rewinddir(directory);
        while ((entry = readdir(directory)) != NULL) {
                size_t length = strlen(entry->d_name);
                char id[MOUNT_RECORD_ID_MAX];

                if (entry->d_name[0] != '.' || length <= strlen(suffix) + 1 || length - strlen(suffix) > sizeof id ||
                    strcmp(entry->d_name + length - strlen(suffix), suffix) != 0)
                        continue;
                (void)text_copy(id, length - strlen(suffix), entry->d_name + 1);
                if (state_try_lock(state, mount_record_key(id)))         /* nobody is at it */
                        (void)unlinkat(state->dir_fd, entry->d_name, 0); /* then the next one does */
        }
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
                return fail_because(error, ESRCH, "pin container", record->id, "the machine was started anew since");
        r = container_pin(&process, ret_container, error);
        if (r == 0 && !container_same_namespace(&ret_container->mnt_ns, &record->mnt_ns)) {
                container_release(ret_container);
                r = -ESRCH;
        }
        if (r == -ESRCH && record->mnt_ns.id != 0) /* a number that is used again proves nothing */
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

/* What is looked for among the records of a container, and what it is held against. */
struct sought {
        const struct container *container;
        const char *boot_id;
        const struct mount_identity *identity;
        bool by_root;
        const char *except;
};

static int find(const struct state *state, const struct sought *sought,
                bool (*matches)(const struct mount_record *record, const struct sought *sought),
                struct mount_record *ret_record, struct error *error)
{
        DIR *directory = mount_record_list(state, error);
        char id[MOUNT_RECORD_ID_MAX];
        bool found = false;

        if (directory == NULL)
                return error_negative(error->errnum);
        while (!found && mount_record_next(directory, id)) {
                struct error ignored; /* a record that cannot be read is not the one */

                found = !text_same(id, sought->except) && mount_record_read(state, id, ret_record, &ignored) == 0 &&
                        matches(ret_record, sought) &&
                        mount_record_is_of(ret_record, sought->container, sought->boot_id);
        }
        (void)closedir(directory);
        return found ? 0 : -ENOENT;
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
        const struct sought sought = { container, boot_id, identity, by_root, except };

        return find(state, &sought, is_of_mount, ret_record, error);
}

int mount_record_find_replacing(const struct state *state, const struct container *container, const char *boot_id,
                                const struct mount_identity *identity, struct mount_record *ret_record,
                                struct error *error)
{
        const struct sought sought = { container, boot_id, identity, /* by_root= */ true, /* except= */ NULL };

        return find(state, &sought, is_to_replace, ret_record, error);
}

int mount_record_find_live(const struct state *state, const struct mount_record *except, mount_record_match *matches,
                           const void *argument, char *ret_name, struct error *error)
{
        static struct mount_record other;
        DIR *directory = mount_record_list(state, error);
        char id[MOUNT_RECORD_ID_MAX];
        bool found = false;

        if (directory == NULL)
                return error_negative(error->errnum);
        while (!found && mount_record_next(directory, id)) {
                cleanup_container struct container holder = CONTAINER_NONE;
                struct error ignored; /* one that cannot be read, or whose container is gone, has nothing */

                if (strcmp(id, except->id) == 0 || mount_record_read(state, id, &other, &ignored) < 0 ||
                    !matches(&other, argument) || mount_record_reach(&other, except->boot_id, &holder, &ignored) < 0)
                        continue;
                found = true;
                (void)text_copy(ret_name, CONTAINER_NAME_MAX, holder.name);
        }
        (void)closedir(directory);
        return found ? 0 : -ENOENT;
}

bool mount_record_remap_lives(struct state *state, uint64_t key)
{
        return !state_is_free(state, key);
}
