/* SPDX-License-Identifier: Apache-2.0 */
#include "provision/record.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "process/log.h"
#include "state/volume_record.h"

#define DIRECTORY "provisioned" /* of the state */
#define RECORD_VERSION 1
#define SUFFIX ".json"

static const struct {
        const char *member;
        size_t offset;
        size_t size;
} strings[] = {
#define STRING(member, field)                                                                                          \
        {                                                                                                              \
                member, offsetof(struct provision_record, field), sizeof((struct provision_record *)0)->field          \
        }
        STRING("name", name),
        STRING("pool", pool),
        STRING("type", pool_type),
        STRING("profile", profile),
        STRING("id", id),
        STRING("targetType", target_type),
        STRING("fsType", fs_type),
        STRING("accessMode", access_mode),
        STRING("reclaimPolicy", reclaim_policy),
        STRING("identity", identity),
#undef STRING
};

static const char *const stages[] = { "creating", "created", "deleting" };

const char *provision_stage_word(enum provision_stage stage)
{
        return stages[stage];
}

static void file_name(const char *name, char *ret_file)
{
        char stem[VOLUME_RECORD_STEM_SIZE];

        volume_record_stem(name, stem);
        (void)snprintf(ret_file, NAME_MAX + 1, "%s" SUFFIX, stem);
}

int provision_record_open(const char *state_dir, bool create, struct state *ret_state, struct error *error)
{
        return state_open(state_dir, DIRECTORY, create, ret_state, error);
}

static bool from_json(const json_t *object, struct provision_record *ret_record)
{
        const json_t *size = json_object_get(object, "size");
        const json_t *asked = json_object_get(object, "askedSize");
        const char *stage = json_string_value(json_object_get(object, "stage"));
        int known = -1;

        for (size_t i = 0; i < sizeof strings / sizeof strings[0]; i++) {
                const char *value = json_string_value(json_object_get(object, strings[i].member));

                if (value == NULL && strcmp(strings[i].member, "identity") == 0)
                        continue; /* of before there was one */
                if (value == NULL || !text_copy((char *)ret_record + strings[i].offset, strings[i].size, value))
                        return false;
        }
        for (int i = 0; stage != NULL && i < (int)(sizeof stages / sizeof stages[0]); i++)
                if (strcmp(stage, stages[i]) == 0)
                        known = i;
        if (known < 0 || !json_is_integer(size) || !json_is_integer(asked) ||
            !json_is_object(json_object_get(object, "parameters")) ||
            !json_is_array(json_object_get(object, "mountFlags")))
                return false;
        ret_record->stage = (enum provision_stage)known;
        ret_record->size_bytes = (uint64_t)json_integer_value(size);
        ret_record->asked_bytes = (uint64_t)json_integer_value(asked);
        ret_record->adopted = json_is_true(json_object_get(object, "adopted"));
        ret_record->keeps_content = json_is_false(json_object_get(object, "eraseAfter"));
        ret_record->parameters = json_incref(json_object_get(object, "parameters"));
        ret_record->mount_flags = json_incref(json_object_get(object, "mountFlags"));
        return ret_record->name[0] != '\0' && ret_record->pool[0] != '\0' && ret_record->id[0] != '\0';
}

static json_t *to_json(const struct provision_record *record)
{
        json_t *object =
                json_pack("{s:i, s:s, s:I, s:I, s:b, s:b, s:O, s:O}", "version", RECORD_VERSION, "stage",
                          stages[record->stage], "size", (json_int_t)record->size_bytes, "askedSize",
                          (json_int_t)record->asked_bytes, "adopted", record->adopted, "eraseAfter",
                          !record->keeps_content, "parameters", record->parameters, "mountFlags", record->mount_flags);
        int r = object == NULL ? -1 : 0;

        for (size_t i = 0; r == 0 && i < sizeof strings / sizeof strings[0]; i++)
                r = json_object_set_new(object, strings[i].member,
                                        json_string((const char *)record + strings[i].offset));
        if (r == 0)
                return object;
        json_decref(object);
        return NULL;
}

/* name NULL: whoever's. One that is set aside is as if it were not there. */
static int read_file(const struct state *state, const char *file, const char *name, struct provision_record *ret_record,
                     struct error *error)
{
        cleanup_json json_t *object = NULL;
        char aside[STATE_ASIDE_SIZE];
        const json_t *version;
        struct stat st;
        int r;

        *ret_record = (struct provision_record){};
        if (fstatat(state->dir_fd, file, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return errno == ENOENT ? -ENOENT : fail(error, errno, "stat", file);
        r = S_ISREG(st.st_mode) ? json_file_load(state->dir_fd, file, JSON_OBJECT, &object, error) : -EBADMSG;
        if (r < 0 && r != -EBADMSG && r != -EFBIG)
                return r;
        version = json_object_get(object, "version");
        if (json_is_integer(version) && json_integer_value(version) != RECORD_VERSION)
                return fail_because(error, EPROTONOSUPPORT, "read record", file,
                                    "the record %s is of version %lld, and this program understands version %d", file,
                                    (long long)json_integer_value(version), RECORD_VERSION);
        if (r == 0 && from_json(object, ret_record) && (name == NULL || strcmp(ret_record->name, name) == 0))
                return 0;
        provision_record_release(ret_record);
        state_set_aside(state, file, aside);
        log_say("the record %s is torn or not ours; it was set aside as %s", file, aside);
        return -ENOENT;
}

int provision_record_read(const struct state *state, const char *name, struct provision_record *ret_record,
                          struct error *error)
{
        char file[NAME_MAX + 1];

        file_name(name, file);
        return read_file(state, file, name, ret_record, error);
}

bool provision_record_exists(const char *state_dir, const char *name)
{
        char file[NAME_MAX + 1];
        char path[PATH_MAX];

        file_name(name, file);
        return snprintf(path, sizeof path, "%s/" DIRECTORY "/%s", state_dir, file) < (int)sizeof path &&
               faccessat(AT_FDCWD, path, F_OK, 0) == 0;
}

int provision_record_find(const char *state_dir, const char *name, struct provision_record *ret_record,
                          struct error *error)
{
        cleanup_state struct state state = STATE_NONE;
        int r = provision_record_open(state_dir, /* create= */ false, &state, error);

        *ret_record = (struct provision_record){};
        return r < 0 ? r : provision_record_read(&state, name, ret_record, error);
}

int provision_record_write(const struct state *state, const struct provision_record *record, struct error *error)
{
        cleanup_json json_t *object = to_json(record);
        char file[NAME_MAX + 1];
        int r;

        file_name(record->name, file);
        r = json_file_replace(state->dir_fd, file, object, FILE_DURABLE);
        return r < 0 ? fail(error, -r, "write record", record->name) : 0;
}

int provision_record_remove(const struct state *state, const char *name, struct error *error)
{
        char file[NAME_MAX + 1];
        int r;

        file_name(name, file);
        r = state_remove(state, file);
        return r < 0 ? fail(error, -r, "remove record", name) : 0;
}

int provision_record_each(const struct state *state, provision_record_function *function, void *argument,
                          struct error *error)
{
        DIR *list = state_list(state);
        const struct dirent *entry;
        int r = 0;

        if (list == NULL)
                return fail(error, errno, "open state", DIRECTORY);
        while (r == 0 && (entry = readdir(list)) != NULL) {
                cleanup_provision_record struct provision_record record = {};
                char stem[NAME_MAX + 1];

                if (entry->d_name[0] == '.' || !text_ends(entry->d_name, SUFFIX))
                        continue;
                r = read_file(state, entry->d_name, NULL, &record, error);
                (void)snprintf(stem, sizeof stem, "%.*s", (int)(strlen(entry->d_name) - strlen(SUFFIX)), entry->d_name);
                if (r == 0 || r == -EPROTONOSUPPORT)
                        r = function(r == 0 ? &record : NULL, stem, argument, error);
                else if (r == -ENOENT)
                        r = 0; /* it was removed meanwhile, or set aside */
        }
        (void)closedir(list); /* nothing was written */
        return r;
}

void provision_record_release(struct provision_record *record)
{
        json_decref(record->parameters);
        json_decref(record->mount_flags);
        record->parameters = record->mount_flags = NULL;
}
