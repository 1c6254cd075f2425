/* SPDX-License-Identifier: Apache-2.0 */
#include "provision/profile_file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/nearest.h"
#include "base/reply.h"
#include "base/text.h"
#include "pool/record.h"
#include "state/access.h"

#define DEFAULT_PATH "/etc/flexgraft/profiles.json"
#define NAME_BYTES_MAX (PROVISION_NAME_MAX - 1)
#define FLAGS_BYTES_MAX 4096U
#define FIELD_SIZE 48 /* of a field's name; the longest known one has 26 bytes */
#define PATH_SIZE 384 /* of a field's: a profile's name, and the fields that it is in */
#define IGNORED_MAX 32

const char *profile_file_path(void)
{
        return secure_getenv("FLEXGRAFT_PROFILES") ?: DEFAULT_PATH;
}

/* ---- the fields */

static bool is_fs_type(const json_t *value)
{
        return json_is_string(value) && json_string_length(value) < sizeof((struct provision_record *)0)->fs_type;
}

/* CSI allows 4 KiB in total. */
static bool is_flags(const json_t *value)
{
        const json_t *flag;
        size_t bytes = 0;
        size_t i;

        json_array_foreach (value, i, flag)
                bytes += json_string_length(flag);
        return file_key_is_texts(value) && bytes <= FLAGS_BYTES_MAX;
}

static bool is_mode(const json_t *value)
{
        return json_is_string(value) && text_among(json_string_value(value), access_modes);
}

static bool is_parameters(const json_t *value)
{
        const char *key;
        const json_t *member;

        json_object_foreach ((json_t *)value, key, member)
                if (!json_is_string(member))
                        return false;
        return json_is_object(value);
}

static const struct file_key provider_keys[] = {
        { "type", "a pool's type", file_key_is_text, true, NULL,
          "Type of the pool, with or without \"org.flexgraft.\" in front.", NULL },
        { "name", "a pool's name", file_key_is_text, true, NULL, "Name of the pool.", NULL },
        {},
};
static const struct file_key resource_provider_keys[] = {
        { "resource_providers", "an array of objects", file_key_is_array, true, NULL, "Pools, by type and name.",
          provider_keys },
        {},
};
static const struct file_key plugin_keys[] = {
        { "plugin_type", "a pool's type", file_key_is_text, true, NULL,
          "Type of the pools, with or without \"org.flexgraft.\" in front.", NULL },
        {},
};
static const struct file_key mount_keys[] = {
        { "fs_type", "a filesystem's name of at most 31 bytes", is_fs_type, false, NULL, "Type of the filesystem.",
          NULL },
        { "mount_flags", "an array of strings, of at most 4096 bytes together", is_flags, false, NULL, "Mount options.",
          NULL },
        {},
};
static const struct file_key no_keys[] = { {} };
static const struct file_key access_mode_keys[] = {
        { "mode", "an access mode of CSI, by name or number", is_mode, true, NULL,
          "Who may use the volume, as CSI has it.", NULL },
        {},
};
static const struct file_key capability_keys[] = {
        { "mount", "an object", file_key_is_object, false, NULL, "The volume has a filesystem.", mount_keys },
        { "block", "an object", file_key_is_object, false, NULL, "The volume is a block device.", no_keys },
        { "access_mode", "an object", file_key_is_object, true, NULL, "Access mode of the volume.", access_mode_keys },
        {},
};
static const struct file_key of_profile[] = {
        { "resource_provider_selector", "an object", file_key_is_object, false, NULL,
          "Pools that the profile is for, by type and name.", resource_provider_keys },
        { "csi_plugin_type_selector", "an object", file_key_is_object, false, NULL,
          "Pools that the profile is for, by type.", plugin_keys },
        { "volume_capabilities", "an object", file_key_is_object, true, NULL, "What its volumes are.",
          capability_keys },
        { "create_parameters", "an object of strings", is_parameters, false, NULL,
          "Parameters of the pool for new volumes.", NULL },
        {},
};
const struct file_key *const profile_keys = of_profile;

static const struct file_key file_keys[] = {
        { "profile_matrix", "an object", file_key_is_object, true, NULL, "Profiles, by name.", NULL },
        {},
};

/* ---- one spelling */

/* "fs_type" becomes "fsType". */
static void put_camel_case(const char *name, char ret_camel[FIELD_SIZE])
{
        size_t length = 0;

        for (; *name != '\0' && length + 1 < FIELD_SIZE; name++) {
                bool begins = *name == '_' && name[1] != '\0';

                if (begins)
                        name++;
                ret_camel[length++] = (char)(begins ? toupper((unsigned char)*name) : *name);
        }
        ret_camel[length] = '\0';
}

/* "FS-Type" becomes "fstype". False: it is longer than any field. */
static bool put_letters(const char *name, char ret_letters[FIELD_SIZE])
{
        size_t length = 0;

        for (; *name != '\0' && length + 1 < FIELD_SIZE; name++)
                if (*name != '_' && *name != '-' && *name != ' ')
                        ret_letters[length++] = (char)tolower((unsigned char)*name);
        ret_letters[length] = '\0';
        return *name == '\0';
}

/* Whether it is the field in another case or with other separators, or with one letter in four wrong. */
static bool is_nearly(const char *name, const char *field)
{
        char letters[FIELD_SIZE];
        char of_field[FIELD_SIZE];

        return put_letters(name, letters) && put_letters(field, of_field) &&
               nearest_distance(letters, of_field) <= strlen(of_field) / 4;
}

/* The row of a field in one of its two spellings; NULL: it is unknown. */
static const struct file_key *find_field(const struct file_key *keys, const char *name)
{
        char camel[FIELD_SIZE];

        for (; keys->name != NULL; keys++) {
                put_camel_case(keys->name, camel);
                if (strcmp(name, keys->name) == 0 || strcmp(name, camel) == 0)
                        return keys;
        }
        return NULL;
}

static bool check_unknown(const struct file_key *keys, const char *name, char *ret_complaint)
{
        char camel[FIELD_SIZE];

        for (; keys->name != NULL; keys++)
                if (is_nearly(name, keys->name)) {
                        put_camel_case(keys->name, camel);
                        (void)snprintf(ret_complaint, FILE_KEY_COMPLAINT_SIZE,
                                       strcmp(camel, keys->name) == 0 ? "unknown field \"%.64s\"; it is spelled \"%s\""
                                                                      : "unknown field \"%.64s\"; it is spelled "
                                                                        "\"%s\" or \"%s\"",
                                       name, keys->name, camel);
                        return false;
                }
        return true; /* a newer version may know it */
}

/* Where fields are that are spelled, and the paths of those that are ignored. */
struct spelling {
        char path[PATH_SIZE]; /* "db.volume_capabilities." */
        json_t *ignored;      /* an array; borrowed; NULL: they are not collected */
        char *ret_complaint;
};

static void note_ignored(const struct spelling *spelling, const char *name)
{
        char path[PATH_SIZE + FIELD_SIZE];

        (void)snprintf(path, sizeof path, "%s%.*s", spelling->path, FIELD_SIZE - 1, name);
        if (spelling->ignored != NULL && json_array_size(spelling->ignored) < IGNORED_MAX)
                (void)json_array_append_new(spelling->ignored, reply_printable(path));
}

static bool spell_fields(const struct file_key *keys, json_t *object, struct spelling *spelling);

static bool spell_members(const struct file_key *key, json_t *value, struct spelling *spelling)
{
        size_t length = strlen(spelling->path);
        bool well = true;

        if (key->members == NULL)
                return true;
        if (json_is_object(value)) {
                (void)snprintf(spelling->path + length, sizeof spelling->path - length, "%s.", key->name);
                well = spell_fields(key->members, value, spelling);
                spelling->path[length] = '\0';
        }
        for (size_t i = 0; well && i < json_array_size(value); i++)
                well = spell_members(key, json_array_get(value, i), spelling);
        return well;
}

static bool spell_fields(const struct file_key *keys, json_t *object, struct spelling *spelling)
{
        char *ret_complaint = spelling->ret_complaint;
        cleanup_json json_t *spelled = json_object();
        const char *name;
        json_t *value;

        json_object_foreach (object, name, value) {
                const struct file_key *key = find_field(keys, name);

                if (key == NULL && !check_unknown(keys, name, ret_complaint))
                        return false;
                if (key == NULL)
                        note_ignored(spelling, name);
                if (key == NULL || json_is_null(value))
                        continue;
                if (json_object_get(spelled, key->name) != NULL) {
                        (void)snprintf(ret_complaint, FILE_KEY_COMPLAINT_SIZE, "\"%s\" is given in two spellings",
                                       key->name);
                        return false;
                }
                if (!spell_members(key, value, spelling))
                        return false;
                (void)json_object_set(spelled, key->name, value);
        }
        (void)json_object_clear(object);
        (void)json_object_update(object, spelled);
        return true;
}

/* An enum is a name, a whole number, or that number as a string. */
static void name_mode(json_t *object)
{
        const json_t *value = json_object_get(object, "mode");
        double number = json_number_value(value); /* 1, and 1.0 */
        uint64_t written;

        if (json_is_string(value) && text_number(json_string_value(value), INT32_MAX, &written))
                number = (double)written;
        for (size_t i = 0; access_modes[i] != NULL; i++)
                if (number == (double)(i + 1))
                        (void)json_object_set_new(object, "mode", json_string(access_modes[i]));
}

/* In a map, which has no fields. */
static void drop_nulls(json_t *map)
{
        const char *key;
        json_t *member;
        void *next;

        json_object_foreach_safe (map, next, key, member)
                if (json_is_null(member))
                        (void)json_object_del(map, key);
}

static void drop_empty(json_t *object, const char *name)
{
        const json_t *value = json_object_get(object, name);

        if ((json_is_string(value) && json_string_length(value) == 0) ||
            (json_is_array(value) && json_array_size(value) == 0) ||
            (json_is_object(value) && json_object_size(value) == 0))
                (void)json_object_del(object, name);
}

static bool spell(json_t *profile, struct spelling *spelling)
{
        json_t *capabilities;
        json_t *mount;

        if (!spell_fields(of_profile, profile, spelling))
                return false;
        capabilities = json_object_get(profile, "volume_capabilities");
        mount = json_object_get(capabilities, "mount");
        name_mode(json_object_get(capabilities, "access_mode"));
        drop_nulls(json_object_get(profile, "create_parameters"));
        drop_empty(profile, "create_parameters");
        drop_empty(mount, "fs_type");
        drop_empty(mount, "mount_flags");
        return true;
}

bool profile_spell(json_t *profile, char *ret_complaint)
{
        struct spelling spelling = { .ret_complaint = ret_complaint };

        return spell(profile, &spelling);
}

/* ---- the file */

/* Whether exactly one of two keys is there. */
static bool check_one_of(const json_t *object, const char *one, const char *other, char *ret_complaint)
{
        if ((json_object_get(object, one) != NULL) != (json_object_get(object, other) != NULL))
                return true;
        (void)snprintf(ret_complaint, FILE_KEY_COMPLAINT_SIZE, "one of \"%s\" and \"%s\" must be given", one, other);
        return false;
}

static bool check_profile(const char *name, json_t *profile, struct spelling *spelling)
{
        char *ret_complaint = spelling->ret_complaint;
        const char *wrong = NULL;

        if (name[0] == '\0' || strlen(name) > NAME_BYTES_MAX)
                wrong = "its name must have 1 to 255 bytes";
        else if (!json_is_object(profile))
                wrong = "it must be an object";
        if (wrong != NULL)
                (void)snprintf(ret_complaint, FILE_KEY_COMPLAINT_SIZE, "%s", wrong);
        (void)snprintf(spelling->path, sizeof spelling->path, "%s.", name);
        return wrong == NULL && spell(profile, spelling) &&
               file_keys_check(of_profile, profile, /* strict= */ false, ret_complaint) &&
               check_one_of(profile, "resource_provider_selector", "csi_plugin_type_selector", ret_complaint) &&
               check_one_of(json_object_get(profile, "volume_capabilities"), "mount", "block", ret_complaint);
}

int profile_file_read(json_t **ret_matrix, json_t *ignored, struct error *error)
{
        const char *path = profile_file_path();
        char complaint[FILE_KEY_COMPLAINT_SIZE];
        struct spelling spelling = { .ignored = ignored, .ret_complaint = complaint };
        cleanup_json json_t *file = NULL;
        json_t *matrix;
        const char *name;
        json_t *profile;
        int r = json_file_load(AT_FDCWD, path, JSON_OBJECT, &file, error);

        if (r == -ENOENT) {
                *ret_matrix = json_object();
                return 0;
        }
        if (r < 0)
                return r;
        if (!spell_fields(file_keys, file, &spelling) ||
            !file_keys_check(file_keys, file, /* strict= */ false, complaint))
                return fail_because(error, EBADMSG, "read profiles", path, "%s", complaint);
        matrix = json_object_get(file, "profile_matrix");
        json_object_foreach (matrix, name, profile)
                if (!check_profile(name, profile, &spelling))
                        return fail_because(error, EBADMSG, "read profiles", path, "profile \"%.128s\": %s", name,
                                            complaint);
        *ret_matrix = json_incref(matrix);
        return 0;
}
