/* SPDX-License-Identifier: Apache-2.0 */
#include "state/volume_record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"
#include "process/log.h"

void volume_record_stem(const char *name, char *ret_stem)
{
        static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_~.";
        size_t length = 0;

        for (const char *byte = name; *byte != '\0'; byte++) {
                bool odd = strchr(plain, *byte) == NULL || (byte == name && *byte == '.');

                if (length + 3 > VOLUME_RECORD_STEM_SIZE - 18) {
                        (void)snprintf(ret_stem + length, 18, "%%%016llx", (unsigned long long)hash_text(name));
                        return;
                }
                if (odd)
                        length += (size_t)snprintf(ret_stem + length, 4, "%%%02X", (unsigned char)*byte);
                else
                        ret_stem[length++] = *byte;
        }
        ret_stem[length] = '\0';
}

/* Of the stem, so that the lock can be told from a file's name. */
uint64_t volume_record_key(const char *name)
{
        char stem[VOLUME_RECORD_STEM_SIZE];

        volume_record_stem(name, stem);
        return hash_text(stem);
}

/* driver NULL: the plain name. No stem has an '@', so the two cannot be confused. */
static void file_name(const char *name, const char *driver, char *ret_file)
{
        char stem[VOLUME_RECORD_STEM_SIZE];

        volume_record_stem(name, stem);
        if (driver == NULL)
                (void)snprintf(ret_file, NAME_MAX + 1, "%s" RECORD_SUFFIX, stem);
        else
                (void)snprintf(ret_file, NAME_MAX + 1, "%s@%016llx" RECORD_SUFFIX, stem,
                               (unsigned long long)hash_text(driver));
}

/* A directory of a volume. */
static const struct record_field dir_fields[] = {
#define ROW(type, key, field, is_optional, help)                                                                       \
        RECORD_ROW(RECORD_##type, key, struct mount_dir, field, help, .optional = (is_optional))
        ROW(STRING, "dir", dir, false, "path of the directory"),
        ROW(NUMBER, "made", made, false, "how many of its last components flexgraft made"),
        ROW(BOOLEAN, "mountIdUnique", identity.unique, true, "whether mountId is never used again"),
        ROW(NUMBER, "mountId", identity.id, true, "id of the mount on it"),
        ROW(NUMBER, "device", identity.device, true, "device of the mount's root"),
        ROW(NUMBER, "inode", identity.inode, true, "inode of the mount's root"),
        ROW(BOOLEAN, "readOnly", read_only, true, "whether a pod has it read-only"),
        ROW(NUMBER, "since", since, true, "when it was mounted, in seconds since 1970"),
        RECORD_ROW(RECORD_NUMBER, "podDevice", struct mount_dir, pod_device,
                   "number of the loop device that a pod has on it", .optional = true, .with = "podDevice"),
        RECORD_ROW(RECORD_NUMBER, "podSource", struct mount_dir, pod_source, "number of the volume's device below that",
                   .optional = true, .with = "podDevice"),
        RECORD_ROW(RECORD_BOOLEAN, "podWrites", struct mount_dir, pod_writes,
                   "whether the pod may write to that device", .optional = true, .with = "podDevice"),
        RECORD_ROW(RECORD_NUMBER, "remapKey", struct mount_dir, remap_key,
                   "key of the lock that the remap-daemon which serves the mount holds", .optional = true,
                   .with = "remapKey"),
        RECORD_ROW(RECORD_NUMBER, "sourceDevice", struct mount_dir, source_device,
                   "device of the filesystem that it serves", .optional = true, .with = "sourceDevice"),
        RECORD_ROW(RECORD_BOOLEAN, "sourceReadOnly", struct mount_dir, source_reads_only, "whether that is read-only",
                   .optional = true, .with = "sourceReadOnly"),
        RECORD_ROW(RECORD_NUMBER, "sourceKey", struct mount_dir, source_key, "hash of what the pod's options name",
                   .optional = true, .with = "sourceKey"),
        RECORD_ROW(RECORD_NUMBER, "replaces", struct mount_dir, replaces,
                   "unique id of the mount that it was to take the place of", .optional = true, .with = "replaces"),
        RECORD_ROW(RECORD_BOOLEAN, "waitsForUsers", struct mount_dir, waits_for_users,
                   "whether it is exchanged when its pod has a user namespace", .optional = true,
                   .with = "waitsForUsers"),
        {},
#undef ROW
};

/* The order of the rows is that of the keys in the file; keep it, and records stay the same byte for byte. */
static const struct record_field fields[] = {
#define ROW(type, key, field, help, ...)                                                                               \
        RECORD_ROW(RECORD_##type, key, struct volume_record, field, help, .optional = true, __VA_ARGS__)
#define PLAIN(type, key, field, help) ROW(type, key, field, help, .with = NULL)
        PLAIN(NUMBER, "deviceNumber", device_number, "number of the device"),
        PLAIN(BOOLEAN, "readOnly", read_only, "whether the volume is staged read-only"),
        ROW(LIST, "published", published, "directories that the volume is published at", .members = dir_fields,
            .member_size = sizeof(struct mount_dir), .count_offset = offsetof(struct volume_record, published_count)),
        PLAIN(TEXT, "name", name, "name of the volume"),
        PLAIN(TEXT, "driver", driver, "driver that it belongs to; empty: any"),
        PLAIN(TEXT, "type", kind, "type of the volume"),
        PLAIN(TEXT, "node", node, "node that it was attached to; empty: not said"),
        PLAIN(TEXT, "formatting", formatting, "device that mkfs was started on, and did not finish; empty: none"),
        PLAIN(TEXT, "source", source, "image, or device as it was requested"),
        PLAIN(TEXT, "device", device, "path of the device; empty: not attached"),
        PLAIN(TEXT, "bootId", boot_id, "boot id of the node"),
        ROW(TEXT, "place", location, "pool and id, where the source does not say it", .with = "place"),
        ROW(TEXT, "accessMode", access_mode, "CSI access mode of its profile", .with = "accessMode"),
        ROW(TEXT, "namespace", namespace, "Kubernetes namespace of the pods that have it", .with = "namespace"),
        ROW(NUMBER, "filesystem", filesystem, "device number that files on it show, where it is not that of the device",
            .with = "filesystem"),
        ROW(NUMBER, "since", since, "when it was attached, in seconds since 1970", .with = "since"),
        ROW(TEXT, "uses", uses, "files and devices of the node that it uses besides its device: keys of the index",
            .with = "uses"),
        ROW(MEMBERS, "staged", staged, "directory that the volume is staged at", .with = "staged",
            .members = dir_fields),
        {},
#undef ROW
#undef PLAIN
};

void volume_record_keys(const struct volume_record *record, char *ret_keys)
{
        (void)text_copy(ret_keys, USE_KEYS_SIZE, record->uses);
        use_keys_add_device(ret_keys, record->device_number);
        use_keys_add_device(ret_keys, record->filesystem);
        use_keys_add_volume(ret_keys, record->device_number);
        use_keys_add_volume(ret_keys, record->filesystem);
}

static bool is_sound_dir(const struct mount_dir *dir)
{
        return dir->dir[0] == '/' && dir->made <= text_count(dir->dir, '/');
}

static bool is_sound(const void *read_record)
{
        const struct volume_record *record = read_record;

        for (size_t i = 0; i < record->published_count; i++)
                if (!is_sound_dir(&record->published[i]))
                        return false;
        return record->name[0] != '\0' && record->kind[0] != '\0' && record->boot_id[0] != '\0' &&
               (record->staged.dir == NULL || is_sound_dir(&record->staged));
}

const struct record_table volume_record_table = { .directory = "volumes",
                                                  .version = 1,
                                                  .size = sizeof(struct volume_record),
                                                  .name_offset = offsetof(struct volume_record, name),
                                                  .fields = fields,
                                                  .is_sound = is_sound,
                                                  .variant = '@' };

/*
 * What of the index the record has that was read or written last: who writes a record has its lock since it was read.
 * Were another process to write it nevertheless, an entry would stay that says nothing.
 */
static struct {
        char file[NAME_MAX + 1]; /* "": none */
        char keys[USE_KEYS_SIZE];
        char dirs[USE_KEYS_SIZE];
} last;

/* record NULL: there is none. */
static void note(const struct volume_record *record, const char *file)
{
        (void)text_copy(last.file, sizeof last.file, file);
        last.keys[0] = '\0';
        last.dirs[0] = '\0';
        if (record == NULL)
                return;
        volume_record_keys(record, last.keys);
        if (!volume_record_dir_keys(record, last.dirs))
                last.file[0] = '\0';
}

/* One file. EBADMSG: it is damaged, or of another volume. */
static int load_file(const struct state *state, const char *file, const char *name, struct volume_record *ret_record,
                     struct error *error)
{
        int r = record_read(state, &volume_record_table, file, ret_record, error);

        if (r == 0 && strcmp(ret_record->name, name) != 0)
                r = fail_because(error, EBADMSG, OPERATION_READ_RECORD, file,
                                 "the record %s is damaged, or of another volume", file);
        if (r < 0) {
                volume_record_release(ret_record);
                if (r == -ENOENT)
                        note(NULL, file);
                return r;
        }
        (void)text_copy(ret_record->file, sizeof ret_record->file, file);
        note(ret_record, file);
        return 0;
}

/* name: what it should be of, or NULL. */
static void set_file_aside(const struct state *state, const char *file, const char *name)
{
        char aside[STATE_ASIDE_SIZE];

        if (record_set_aside(state, &volume_record_table, file, name, aside))
                log_failure("the record %s is damaged, or not this volume's; it was renamed to %s", file, aside);
}

/* One file. One that is damaged, or of another volume, is renamed and counts as absent. */
static int read_file(const struct state *state, const char *file, const char *name, struct volume_record *ret_record,
                     struct error *error)
{
        int r = load_file(state, file, name, ret_record, error);

        if (r != -EBADMSG)
                return r;
        set_file_aside(state, file, name);
        return -ENOENT;
}

typedef int read_function(const struct state *state, const char *file, const char *name,
                          struct volume_record *ret_record, struct error *error);

static int find_record(const struct state *state, read_function *function, const char *name, const char *driver,
                       struct volume_record *ret_record, struct error *error)
{
        char file[NAME_MAX + 1];
        int r;

        file_name(name, NULL, file);
        r = function(state, file, name, ret_record, error);
        if (r < 0 && r != -ENOENT)
                return r;
        if (r == 0 && (driver[0] == '\0' || ret_record->driver[0] == '\0' || strcmp(driver, ret_record->driver) == 0))
                return 0;
        volume_record_release(ret_record);
        if (driver[0] == '\0')
                return -ENOENT;
        file_name(name, driver, file);
        return function(state, file, name, ret_record, error);
}

int volume_record_read(const struct state *state, const char *name, const char *driver,
                       struct volume_record *ret_record, struct error *error)
{
        return find_record(state, read_file, name, driver, ret_record, error);
}

int volume_record_peek(const char *state_dir, const char *name, const char *driver, struct volume_record *ret_record,
                       struct error *error)
{
        cleanup_state struct state state = STATE_NONE;
        int r = state_open(state_dir, "volumes", /* create= */ false, &state, error);

        return r < 0 ? r : find_record(&state, load_file, name, driver, ret_record, error);
}

bool volume_record_is_of_this_boot(const struct volume_record *record)
{
        char boot_id[PROC_BOOT_ID_SIZE];

        return proc_boot_id(boot_id) == 0 && strcmp(record->boot_id, boot_id) == 0;
}

bool volume_record_has(const struct volume_record *record, const char *pool_type, const char *path)
{
        struct stat attached;
        struct stat st;

        if (path != NULL && strcmp(record->source, path) == 0)
                return true;
        if (strcmp(record->kind, pool_type) != 0)
                return false;
        return path == NULL || path[0] == '\0' || record->source[0] == '\0' || /* a pool's path may have changed */
               (stat(record->source, &attached) == 0 && stat(path, &st) == 0 && attached.st_dev == st.st_dev &&
                attached.st_ino == st.st_ino);
}

/* A new record gets the plain name, unless that is another driver's. */
static int choose_new_file(const struct state *state, struct volume_record *record, struct error *error)
{
        cleanup_volume_record struct volume_record other = {};
        char file[NAME_MAX + 1];
        int r;

        file_name(record->name, NULL, file);
        r = record->driver[0] == '\0' ? -ENOENT : read_file(state, file, record->name, &other, error);
        if (r < 0 && r != -ENOENT)
                return r;
        if (r == 0 && other.driver[0] != '\0' && strcmp(other.driver, record->driver) != 0)
                file_name(record->name, record->driver, file);
        (void)text_copy(record->file, sizeof record->file, file);
        return 0;
}

static int choose_file(const struct state *state, struct volume_record *record, struct error *error)
{
        return record->file[0] != '\0' ? 0 : choose_new_file(state, record, error);
}

/* What the record on disk has of the index: nothing where there is none, or a damaged one. */
struct old {
        char keys[USE_KEYS_SIZE];
        char dirs[USE_KEYS_SIZE];
        struct volume_record *record; /* NULL: dirs says it; owned */
};

static int find_old(const struct state *state, const char *file, struct old *ret_old, struct error *error)
{
        int r;

        ret_old->record = NULL;
        if (strcmp(last.file, file) == 0) {
                (void)text_copy(ret_old->keys, sizeof ret_old->keys, last.keys);
                (void)text_copy(ret_old->dirs, sizeof ret_old->dirs, last.dirs);
                return 0;
        }
        ret_old->record = calloc(1, sizeof *ret_old->record);
        if (ret_old->record == NULL)
                return fail(error, ENOMEM, OPERATION_READ_RECORD, file);
        r = record_read(state, &volume_record_table, file, ret_old->record, error);
        if (r < 0)
                *ret_old->record = (struct volume_record){};
        volume_record_keys(ret_old->record, ret_old->keys);
        return r == -ENOENT || r == -EBADMSG ? 0 : r;
}

/* record: the new one; NULL: there is none. */
static void drop_old_dirs(const struct state *state, const struct old *old, const struct volume_record *record,
                          const char *file)
{
        char dirs[USE_KEYS_SIZE] = "";

        if (old->record != NULL)
                volume_record_drop_dirs(state, old->record, record, file);
        else if (record == NULL || volume_record_dir_keys(record, dirs))
                use_index_drop_old(state, old->dirs, dirs, USE_HOLDER_VOLUME, file);
}

static void release_old(struct old *old)
{
        if (old->record != NULL)
                volume_record_release(old->record);
        free(old->record);
}

int volume_record_write(const struct state *state, struct volume_record *record, enum file_durability durability,
                        struct error *error)
{
        __attribute__((cleanup(release_old))) struct old old;
        char keys[USE_KEYS_SIZE];
        int r;

        old.record = NULL;
        if ((r = choose_file(state, record, error)) < 0 || (r = find_old(state, record->file, &old, error)) < 0)
                return r;
        volume_record_keys(record, keys);
        if ((r = use_index_add(state, keys, USE_HOLDER_VOLUME, record->file, error)) < 0 ||
            (r = volume_record_index_dirs(state, record, record->file, error)) < 0)
                return r;
        last.file[0] = '\0';
        r = record_write(state, &volume_record_table, record->file, record->name, record, durability, error);
        if (r < 0)
                return r;
        use_index_drop_old(state, old.keys, keys, USE_HOLDER_VOLUME, record->file);
        drop_old_dirs(state, &old, record, record->file);
        note(record, record->file);
        return 0;
}

int volume_record_remove(const struct state *state, struct volume_record *record, struct error *error)
{
        __attribute__((cleanup(release_old))) struct old old;
        int r;

        old.record = NULL;
        /* without its keys the entries of the index would stay */
        if ((r = choose_file(state, record, error)) < 0 || (r = find_old(state, record->file, &old, error)) < 0)
                return r;
        last.file[0] = '\0';
        r = use_index_remove(state, old.keys, USE_HOLDER_VOLUME, record->file);
        if (r < 0)
                return fail(error, -r, "remove record", record->name);
        drop_old_dirs(state, &old, NULL, record->file);
        return 0;
}

struct walk {
        const struct state *state;
        bool set_aside;
        volume_record_function *function;
        void *argument;
};

static int pass_on(void *record, const char *file, void *argument, struct error *error)
{
        const struct walk *walk = argument;
        struct volume_record *read = record;
        bool torn = read == NULL && error->errnum == EBADMSG;
        int r;

        if (read != NULL)
                (void)text_copy(read->file, sizeof read->file, file);
        r = walk->function(read, file, walk->argument, error);
        if (torn && walk->set_aside)
                set_file_aside(walk->state, file, /* name= */ NULL);
        return r;
}

int volume_record_each(const struct state *state, bool set_aside, volume_record_function *function, void *argument,
                       struct error *error)
{
        struct walk walk = { .state = state, .set_aside = set_aside, .function = function, .argument = argument };
        struct volume_record record;

        return record_each(state, &volume_record_table, &record, pass_on, &walk, error);
}

static int pass_on_entry(const char *key, char sort, const char *file, void *argument, struct error *error)
{
        cleanup_volume_record struct volume_record record = {};
        struct walk *walk = argument;

        (void)key;
        return sort == USE_HOLDER_VOLUME
                       ? record_pass(walk->state, &volume_record_table, file, &record, pass_on, walk, error)
                       : 0;
}

static int each_with(const struct state *state, const char *key, volume_record_function *function, void *argument,
                     struct error *error)
{
        struct walk walk = { .state = state, .function = function, .argument = argument };

        return use_index_is_complete(state->dir_fd, USE_HOLDERS_OF_USES)
                       ? use_index_each(state->dir_fd, key, pass_on_entry, &walk, error)
                       : volume_record_each(state, /* set_aside= */ false, function, argument, error);
}

int volume_record_each_on(const struct state *state, const char *dir, volume_record_function *function, void *argument,
                          struct error *error)
{
        char key[USE_KEYS_SIZE] = "";

        use_keys_add_directory(key, dir);
        return each_with(state, key, function, argument, error);
}

int volume_record_each_of_device(const struct state *state, uint64_t device, volume_record_function *function,
                                 void *argument, struct error *error)
{
        char key[USE_KEYS_SIZE] = "";

        use_keys_add_volume(key, device);
        return each_with(state, key, function, argument, error);
}

void volume_record_tidy(struct state *state)
{
        record_tidy(state, &volume_record_table);
}

void volume_record_release(struct volume_record *record)
{
        record_release(&volume_record_table, record);
}
