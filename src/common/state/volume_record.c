/* SPDX-License-Identifier: Apache-2.0 */
#include "state/volume_record.h"

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
#include "process/log.h"

#define RECORD_VERSION 1
#define SUFFIX ".json"

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

/* Of the stem, so that whoever finds a file of it knows the lock, too. */
uint64_t volume_record_key(const char *name)
{
        char stem[VOLUME_RECORD_STEM_SIZE];

        volume_record_stem(name, stem);
        return hash_bytes(HASH_SEED, stem, strlen(stem));
}

/* driver NULL: the plain name. '@' stands in no stem, so the two are never confused. */
static void file_name(const char *name, const char *driver, char *ret_file)
{
        char stem[VOLUME_RECORD_STEM_SIZE];

        volume_record_stem(name, stem);
        if (driver == NULL)
                (void)snprintf(ret_file, NAME_MAX + 1, "%s" SUFFIX, stem);
        else
                (void)snprintf(ret_file, NAME_MAX + 1, "%s@%016llx" SUFFIX, stem,
                               (unsigned long long)hash_bytes(HASH_SEED, driver, strlen(driver)));
}

static const struct {
        const char *member;
        size_t offset;
        size_t size;
} strings[] = {
#define STRING(member, field)                                                                                          \
        {                                                                                                              \
                member, offsetof(struct volume_record, field), sizeof((struct volume_record *)0)->field                \
        }
        STRING("name", name),     STRING("driver", driver),         STRING("type", kind),
        STRING("node", node),     STRING("formatting", formatting), STRING("source", source),
        STRING("device", device), STRING("bootId", boot_id),
#undef STRING
};

static bool place_from_json(const json_t *object, struct mount_dir *ret_place)
{
        const char *dir = json_string_value(json_object_get(object, "dir"));
        const json_t *made = json_object_get(object, "made");

        if (dir == NULL || dir[0] != '/' || !json_is_integer(made) || json_integer_value(made) < 0 ||
            (size_t)json_integer_value(made) > text_count(dir, '/'))
                return false;
        *ret_place = (struct mount_dir){
                .dir = strdup(dir),
                .made = (unsigned)json_integer_value(made),
                .identity = { .unique = json_is_true(json_object_get(object, "mountIdUnique")),
                              .id = (uint64_t)json_integer_value(json_object_get(object, "mountId")),
                              .device = (uint64_t)json_integer_value(json_object_get(object, "device")),
                              .inode = (uint64_t)json_integer_value(json_object_get(object, "inode")) },
        };
        return ret_place->dir != NULL;
}

static bool from_json(const json_t *object, struct volume_record *ret_record)
{
        const json_t *staged = json_object_get(object, "staged");
        const json_t *published = json_object_get(object, "published");
        const json_t *number = json_object_get(object, "deviceNumber");
        const json_t *item;
        size_t i;

        for (i = 0; i < sizeof strings / sizeof strings[0]; i++) {
                const json_t *member = json_object_get(object, strings[i].member);
                const char *value = member == NULL ? "" : json_string_value(member);

                if (value == NULL || !text_copy((char *)ret_record + strings[i].offset, strings[i].size, value))
                        return false;
        }
        if ((number != NULL && !json_is_integer(number)) || (published != NULL && !json_is_array(published)))
                return false;
        ret_record->device_number = (uint64_t)json_integer_value(number);
        ret_record->read_only = json_is_true(json_object_get(object, "readOnly"));
        if (staged != NULL && !place_from_json(staged, &ret_record->staged))
                return false;
        ret_record->published = calloc(json_array_size(published) + 1, sizeof *ret_record->published);
        if (ret_record->published == NULL)
                return false;
        json_array_foreach (published, i, item) {
                if (!place_from_json(item, &ret_record->published[i]))
                        return false;
                ret_record->published_count++;
        }
        return ret_record->name[0] != '\0' && ret_record->kind[0] != '\0' && ret_record->boot_id[0] != '\0';
}

static json_t *place_to_json(const struct mount_dir *place)
{
        const struct mount_identity *identity = &place->identity;

        return json_pack("{s:s, s:i, s:b, s:I, s:I, s:I}", "dir", place->dir, "made", (int)place->made, "mountIdUnique",
                         identity->unique, "mountId", (json_int_t)identity->id, "device", (json_int_t)identity->device,
                         "inode", (json_int_t)identity->inode);
}

static json_t *to_json(const struct volume_record *record)
{
        json_t *published = json_array();
        json_t *object =
                json_pack("{s:i, s:I, s:b, s:O}", "version", RECORD_VERSION, "deviceNumber",
                          (json_int_t)record->device_number, "readOnly", record->read_only, "published", published);
        int r = object == NULL ? -1 : 0;

        for (size_t i = 0; r == 0 && i < sizeof strings / sizeof strings[0]; i++)
                r = json_object_set_new(object, strings[i].member,
                                        json_string((const char *)record + strings[i].offset));
        for (size_t i = 0; r == 0 && i < record->published_count; i++)
                r = json_array_append_new(published, place_to_json(&record->published[i]));
        if (r == 0 && record->staged.dir != NULL)
                r = json_object_set_new(object, "staged", place_to_json(&record->staged));
        json_decref(published);
        if (r < 0) {
                json_decref(object);
                return NULL;
        }
        return object;
}

/* One file. -EBADMSG for one that is torn or not a record of ours. */
static int load_file(const struct state *state, const char *file, const char *name, struct volume_record *ret_record,
                     struct error *error)
{
        cleanup_json json_t *object = NULL;
        const json_t *version;
        int r;

        *ret_record = (struct volume_record){};
        r = json_file_load(state->dir_fd, file, JSON_OBJECT, &object, error);
        if (r == -EFBIG)
                r = -EBADMSG;
        if (r < 0 && r != -EBADMSG)
                return r;
        version = json_object_get(object, "version");
        if (r == 0 && json_is_integer(version) && json_integer_value(version) != RECORD_VERSION)
                return fail_because(error, EPROTONOSUPPORT, "read record", file,
                                    "the record %s is of version %lld, and this program understands version %d", file,
                                    (long long)json_integer_value(version), RECORD_VERSION);
        if (r == 0 && from_json(object, ret_record) && (name == NULL || strcmp(ret_record->name, name) == 0)) {
                (void)text_copy(ret_record->file, sizeof ret_record->file, file);
                return 0;
        }
        volume_record_release(ret_record);
        return fail_because(error, EBADMSG, "read record", file, "the record %s is torn or not ours", file);
}

static void set_file_aside(const struct state *state, const char *file)
{
        char aside[STATE_ASIDE_SIZE];

        state_set_aside(state, file, aside);
        log_say("the record %s is torn or not ours; it was set aside as %s", file, aside);
}

/* The same; one that is set aside is as if it were not there. */
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
        cleanup_json json_t *object = to_json(record);
        int r = choose_file(state, record, error);

        if (r < 0)
                return r;
        r = json_file_replace(state->dir_fd, record->file, object, durability);
        return r < 0 ? fail(error, -r, "write record", record->name) : 0;
}

int volume_record_remove(const struct state *state, struct volume_record *record, struct error *error)
{
        int r = choose_file(state, record, error);

        if (r < 0)
                return r;
        r = state_remove(state, record->file);
        return r < 0 ? fail(error, -r, "remove record", record->name) : 0;
}

int volume_record_each(const struct state *state, bool set_aside, volume_record_function *function, void *argument,
                       struct error *error)
{
        DIR *list = state_list(state);
        const struct dirent *entry;
        int r = 0;

        if (list == NULL)
                return fail(error, errno, "open state", "volumes");
        while (r == 0 && (errno = 0, entry = readdir(list)) != NULL) {
                cleanup_volume_record struct volume_record record = {};
                int found;

                if (entry->d_name[0] == '.' || !text_ends(entry->d_name, SUFFIX))
                        continue;
                found = load_file(state, entry->d_name, NULL, &record, error);
                if (found == -ENOENT)
                        continue; /* it was removed meanwhile */
                r = function(found == 0 ? &record : NULL, entry->d_name, argument, error);
                if (found == -EBADMSG && set_aside)
                        set_file_aside(state, entry->d_name);
        }
        if (r == 0 && errno != 0)
                r = fail(error, errno, "read state", "volumes");
        (void)closedir(list); /* nothing was written */
        return r;
}

/* Of a temporary file's name: up to what file_name() put behind it. */
static size_t stem_length(const char *file)
{
        size_t driver = strcspn(file, "@");

        return file[driver] == '@' ? driver : strlen(file) - strlen(SUFFIX ".tmp");
}

void volume_record_tidy(struct state *state)
{
        DIR *list = state_list(state);
        const struct dirent *entry;

        while (list != NULL && (entry = readdir(list)) != NULL) {
                const char *stem = entry->d_name + 1;

                if (entry->d_name[0] == '.' && text_ends(entry->d_name, SUFFIX ".tmp") &&
                    state_try_lock(state, hash_bytes(HASH_SEED, stem, stem_length(stem))))
                        (void)unlinkat(state->dir_fd, entry->d_name, 0); /* then the next one does */
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
#pragma GCC diagnostic ignored "-Wanalyzer-malloc-leak" /* GCC 12 loses sight of what is stored through the array */
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
        free(record->staged.dir);
        record->staged = (struct mount_dir){};
        for (size_t i = 0; i < record->published_count; i++)
                free(record->published[i].dir);
        free(record->published);
        record->published = NULL;
        record->published_count = 0;
}
