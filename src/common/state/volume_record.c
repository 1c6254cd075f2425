/* SPDX-License-Identifier: Apache-2.0 */
#include "state/volume_record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
                        (void)snprintf(ret_stem + length, 18, "%%%016llx",
                                       (unsigned long long)hash_bytes(HASH_SEED, name, strlen(name)));
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
        return hash_bytes(HASH_SEED, stem, strlen(stem));
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
                               (unsigned long long)hash_bytes(HASH_SEED, driver, strlen(driver)));
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
        ROW(MEMBERS, "staged", staged, "directory that the volume is staged at", .with = "staged",
            .members = dir_fields),
        {},
#undef ROW
#undef PLAIN
};

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
                                                  .fields = fields,
                                                  .is_sound = is_sound };

/* One file. EBADMSG: it is damaged, or of another volume. */
static int load_file(const struct state *state, const char *file, const char *name, struct volume_record *ret_record,
                     struct error *error)
{
        int r = record_read(state, &volume_record_table, file, ret_record, error);

        if (r == 0 && strcmp(ret_record->name, name) != 0)
                r = fail_because(error, EBADMSG, "read record", file, "the record %s is damaged, or of another volume",
                                 file);
        if (r < 0)
                volume_record_release(ret_record);
        else
                (void)text_copy(ret_record->file, sizeof ret_record->file, file);
        return r;
}

static void set_file_aside(const struct state *state, const char *file)
{
        char aside[STATE_ASIDE_SIZE];

        state_set_aside(state, file, aside);
        log_say("the record %s is damaged, or not this volume's; it was renamed to %s", file, aside);
}

/* One file. One that is damaged, or of another volume, is renamed and counts as absent. */
static int read_file(const struct state *state, const char *file, const char *name, struct volume_record *ret_record,
                     struct error *error)
{
        int r = load_file(state, file, name, ret_record, error);

        if (r != -EBADMSG)
                return r;
        set_file_aside(state, file);
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

/* A new record gets the plain name, unless that is another driver's. */
static int choose_file(const struct state *state, struct volume_record *record, struct error *error)
{
        cleanup_volume_record struct volume_record other = {};
        char file[NAME_MAX + 1];
        int r;

        if (record->file[0] != '\0')
                return 0;
        file_name(record->name, NULL, file);
        r = record->driver[0] == '\0' ? -ENOENT : read_file(state, file, record->name, &other, error);
        if (r < 0 && r != -ENOENT)
                return r;
        if (r == 0 && other.driver[0] != '\0' && strcmp(other.driver, record->driver) != 0)
                file_name(record->name, record->driver, file);
        (void)text_copy(record->file, sizeof record->file, file);
        return 0;
}

int volume_record_write(const struct state *state, struct volume_record *record, enum file_durability durability,
                        struct error *error)
{
        int r = choose_file(state, record, error);

        return r < 0 ? r
                     : record_write(state, &volume_record_table, record->file, record->name, record, durability, error);
}

int volume_record_remove(const struct state *state, struct volume_record *record, struct error *error)
{
        int r = choose_file(state, record, error);

        if (r < 0)
                return r;
        r = state_remove(state, record->file);
        return r < 0 ? fail(error, -r, "remove record", record->name) : 0;
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
                set_file_aside(walk->state, file);
        return r;
}

int volume_record_each(const struct state *state, bool set_aside, volume_record_function *function, void *argument,
                       struct error *error)
{
        struct walk walk = { .state = state, .set_aside = set_aside, .function = function, .argument = argument };
        struct volume_record record;

        return record_each(state, &volume_record_table, &record, pass_on, &walk, error);
}

/* Of a temporary file's name: without what file_name() appended. */
static size_t stem_length(const char *file)
{
        size_t driver = strcspn(file, "@");

        return file[driver] == '@' ? driver : strlen(file) - strlen(RECORD_SUFFIX ".tmp");
}

void volume_record_tidy(struct state *state)
{
        DIR *list = state_list(state);
        const struct dirent *entry;

        while (list != NULL && (entry = readdir(list)) != NULL) {
                const char *stem = entry->d_name + 1;

                if (entry->d_name[0] == '.' && text_ends(entry->d_name, RECORD_SUFFIX ".tmp") &&
                    state_try_lock(state, hash_bytes(HASH_SEED, stem, stem_length(stem))))
                        (void)unlinkat(state->dir_fd, entry->d_name, 0); /* else the next tidying does */
        }
        if (list != NULL)
                (void)closedir(list);
}

struct mount_dir *volume_record_mount_dir(struct volume_record *record, const char *dir)
{
        if (record->staged.dir != NULL && strcmp(record->staged.dir, dir) == 0)
                return &record->staged;
        for (size_t i = 0; i < record->published_count; i++)
                if (strcmp(record->published[i].dir, dir) == 0)
                        return &record->published[i];
        return NULL;
}

#ifndef __clang__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wanalyzer-malloc-leak" /* GCC 12 does not see what is stored in the array */
#endif
int volume_record_remember(struct volume_record *record, const char *dir, bool staged, unsigned made,
                           const struct mount_identity *identity, struct error *error)
{
        struct mount_dir place = { .dir = strdup(dir), .made = made, .identity = *identity };
        struct mount_dir *grown;

        if (place.dir == NULL)
                return fail(error, ENOMEM, "write record", record->name);
        if (staged) {
                free(record->staged.dir);
                record->staged = place;
                return 0;
        }
        volume_record_forget(record, dir);
        grown = reallocarray(record->published, record->published_count + 1, sizeof *grown);
        if (grown == NULL) {
                free(place.dir);
                return fail(error, ENOMEM, "write record", record->name);
        }
        record->published = grown;
        record->published[record->published_count++] = place;
        return 0;
}

#ifndef __clang__
#pragma GCC diagnostic pop
#endif

void volume_record_forget(struct volume_record *record, const char *dir)
{
        if (record->staged.dir != NULL && strcmp(record->staged.dir, dir) == 0) {
                free(record->staged.dir);
                record->staged = (struct mount_dir){};
                return;
        }
        for (size_t i = 0; i < record->published_count; i++)
                if (strcmp(record->published[i].dir, dir) == 0) {
                        free(record->published[i].dir);
                        record->published[i] = record->published[--record->published_count];
                        return;
                }
}

void volume_record_release(struct volume_record *record)
{
        record_release(&volume_record_table, record);
}
