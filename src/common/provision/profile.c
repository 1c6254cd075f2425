/* SPDX-License-Identifier: Apache-2.0 */
#include "provision/profile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"
#include "process/log.h"
#include "provision/record.h"

#define DEFAULT_PATH "/etc/flexgraft/profiles.json"
#define KEPT "profiles.set" /* beside the records, and no name of one */
#define NAME_BYTES_MAX (PROVISION_NAME_MAX - 1)
#define FLAGS_BYTES_MAX 4096U

static const char *path_of_file(void)
{
        return secure_getenv("FLEXGRAFT_PROFILES") ?: DEFAULT_PATH;
}

/* ---- one profile */

static const json_t *capabilities_of(const json_t *profile)
{
        return json_object_get(profile, "volume_capabilities");
}

bool profile_is_block(const json_t *profile)
{
        return json_is_object(json_object_get(capabilities_of(profile), "block"));
}

const char *profile_fs_type(const json_t *profile)
{
        const json_t *mount = json_object_get(capabilities_of(profile), "mount");

        return json_string_value(json_object_get(mount, "fs_type")) ?: "";
}

const json_t *profile_mount_flags(const json_t *profile)
{
        return json_object_get(json_object_get(capabilities_of(profile), "mount"), "mount_flags");
}

const char *profile_access_mode(const json_t *profile)
{
        const json_t *mode = json_object_get(capabilities_of(profile), "access_mode");

        return json_string_value(json_object_get(mode, "mode"));
}

const json_t *profile_parameters(const json_t *profile)
{
        return json_object_get(profile, "create_parameters");
}

/* "loop", or "org.flexgraft.loop". */
static bool is_type(const char *type, const struct pool *pool)
{
        static const char prefix[] = "org.flexgraft.";

        return strcmp(text_starts(type, prefix) ? type + strlen(prefix) : type, pool->kind->type) == 0;
}

bool profile_selects(const json_t *profile, const struct pool *pool)
{
        const json_t *plugin = json_object_get(profile, "csi_plugin_type_selector");
        const json_t *providers =
                json_object_get(json_object_get(profile, "resource_provider_selector"), "resource_providers");
        const json_t *provider;
        size_t i;

        if (plugin != NULL)
                return is_type(json_string_value(json_object_get(plugin, "plugin_type")), pool);
        json_array_foreach (providers, i, provider)
                if (is_type(json_string_value(json_object_get(provider, "type")), pool) &&
                    strcmp(json_string_value(json_object_get(provider, "name")), pool->name) == 0)
                        return true;
        return false;
}

/* ---- the file */

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
        static const char *const modes[] = { "SINGLE_NODE_WRITER",      "SINGLE_NODE_READER_ONLY",
                                             "MULTI_NODE_READER_ONLY",  "MULTI_NODE_SINGLE_WRITER",
                                             "MULTI_NODE_MULTI_WRITER", NULL };

        return json_is_string(value) && text_among(json_string_value(value), modes);
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
static const struct file_key access_mode_keys[] = {
        { "mode", "an access mode of CSI", is_mode, true, NULL, "Who may use the volume, as CSI has it.", NULL },
        {},
};
static const struct file_key capability_keys[] = {
        { "mount", "an object", file_key_is_object, false, NULL, "The volume has a filesystem.", mount_keys },
        { "block", "an object", file_key_is_object, false, NULL, "The volume is a block device.", NULL },
        { "access_mode", "an object", file_key_is_object, true, NULL, "Access mode of the volume.", access_mode_keys },
        {},
};
static const struct file_key keys[] = {
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

const struct file_key *const profile_keys = keys;

/* A key that is null counts as absent, as in protobuf's JSON. */
static void drop_nulls(json_t *value)
{
        const char *key;
        json_t *member;
        void *next;

        json_object_foreach_safe (value, next, key, member) {
                if (json_is_null(member))
                        (void)json_object_del(value, key);
                else
                        drop_nulls(member);
        }
        for (size_t i = 0; i < json_array_size(value); i++)
                drop_nulls(json_array_get(value, i));
}

/* Whether exactly one of two keys is there. */
static bool check_one_of(const json_t *object, const char *one, const char *other, char *ret_complaint)
{
        if ((json_object_get(object, one) != NULL) != (json_object_get(object, other) != NULL))
                return true;
        (void)snprintf(ret_complaint, FILE_KEY_COMPLAINT_SIZE, "one of \"%s\" and \"%s\" must be given", one, other);
        return false;
}

static bool check_profile(const char *name, const json_t *profile, char *ret_complaint)
{
        const char *wrong = NULL;

        if (name[0] == '\0' || strlen(name) > NAME_BYTES_MAX)
                wrong = "its name must have 1 to 255 bytes";
        else if (!json_is_object(profile))
                wrong = "it must be an object";
        if (wrong != NULL)
                (void)snprintf(ret_complaint, FILE_KEY_COMPLAINT_SIZE, "%s", wrong);
        return wrong == NULL && file_keys_check(keys, profile, /* strict= */ false, ret_complaint) &&
               check_one_of(profile, "resource_provider_selector", "csi_plugin_type_selector", ret_complaint) &&
               check_one_of(capabilities_of(profile), "mount", "block", ret_complaint);
}

/* No file is an empty one. The error's reason names the line, or the profile. */
static int read_file(json_t **ret_matrix, struct error *error)
{
        const char *path = path_of_file();
        cleanup_json json_t *file = NULL;
        json_t *matrix;
        const char *name;
        const json_t *profile;
        int r = json_file_load(AT_FDCWD, path, JSON_OBJECT, &file, error);

        if (r == -ENOENT) {
                *ret_matrix = json_object();
                return 0;
        }
        if (r < 0)
                return r;
        matrix = json_object_get(file, "profile_matrix");
        if (!json_is_object(matrix))
                return fail_because(error, EBADMSG, "read profiles", path,
                                    "\"profile_matrix\" must be given, an object");
        drop_nulls(matrix);
        json_object_foreach (matrix, name, profile) {
                char complaint[FILE_KEY_COMPLAINT_SIZE];

                if (!check_profile(name, profile, complaint))
                        return fail_because(error, EBADMSG, "read profiles", path, "profile \"%.128s\": %s", name,
                                            complaint);
        }
        *ret_matrix = json_incref(matrix);
        return 0;
}

/* ---- the set */

static int note_used(const struct provision_record *record, const char *stem, void *argument, struct error *error)
{
        json_t *used = argument;

        (void)stem;
        (void)error;
        if (record != NULL && record->profile[0] != '\0')
                (void)json_object_set_new(used, record->profile, json_true()); /* without memory it merely may change */
        return 0;
}

/* What was kept; both objects are empty where it cannot be used. */
static void read_kept(const struct state *state, struct profiles *kept)
{
        cleanup_json json_t *file = NULL;
        struct error ignored;

        if (state->dir_fd >= 0)
                (void)json_file_load(state->dir_fd, KEPT, JSON_OBJECT, &file, &ignored); /* then there is no set */
        kept->active = json_is_object(json_object_get(file, "active")) ? json_incref(json_object_get(file, "active"))
                                                                       : json_object();
        kept->inactive = json_is_object(json_object_get(file, "inactive"))
                                 ? json_incref(json_object_get(file, "inactive"))
                                 : json_object();
}

static void keep(const struct state *state, const struct profiles *profiles)
{
        cleanup_json json_t *file = json_pack("{s:O, s:O}", "active", profiles->active, "inactive", profiles->inactive);
        int r = json_file_replace(state->dir_fd, KEPT, file, FILE_DURABLE);

        if (r < 0)
                log_say("the set of profiles cannot be kept: %s", strerrordesc_np(-r));
}

/* A profile that is in use stays as it was when it was used first. */
static void merge(const json_t *matrix, const struct profiles *kept, const json_t *used, struct profiles *ret_profiles)
{
        const char *name;
        json_t *profile;

        json_object_foreach ((json_t *)matrix, name, profile) {
                json_t *was = json_object_get(kept->active, name) ?: json_object_get(kept->inactive, name);
                bool stays = was != NULL && json_object_get(used, name) != NULL;

                if (stays && !json_equal(was, profile))
                        log_say("profile %s is in use and does not change", name);
                (void)json_object_set(ret_profiles->active, name, stays ? was : profile);
        }
        json_object_foreach (kept->active, name, profile)
                if (json_object_get(matrix, name) == NULL)
                        (void)json_object_set(ret_profiles->inactive, name, profile);
        json_object_foreach (kept->inactive, name, profile)
                if (json_object_get(matrix, name) == NULL)
                        (void)json_object_set(ret_profiles->inactive, name, profile);
}

int profiles_load(const char *state_dir, struct profiles *ret_profiles, struct error *error)
{
        const uint64_t key = hash_bytes(HASH_SEED, KEPT, strlen(KEPT));
        cleanup_profiles struct profiles kept = {};
        cleanup_json json_t *matrix = NULL;
        cleanup_json json_t *used = json_object();
        cleanup_state struct state state = STATE_NONE; /* with a lock of its own, which ends here */
        struct error broken;
        int r;

        *ret_profiles = (struct profiles){ .active = json_object(), .inactive = json_object() };
        r = provision_record_open(state_dir, /* create= */ true, &state, error);
        if (r == -EROFS || r == -ENOSPC || r == -EDQUOT)
                r = -ENOENT; /* then the set is not kept */
        if (r == 0 && ((r = state_lock(&state, key, error)) < 0 ||
                       (r = provision_record_each(&state, note_used, used, error)) < 0))
                return r;
        if (r < 0 && r != -ENOENT)
                return r;
        read_kept(&state, &kept);
        if (read_file(&matrix, &broken) < 0) {
                (void)snprintf(ret_profiles->problem, sizeof ret_profiles->problem, "%.200s: %.300s", path_of_file(),
                               error_why(&broken));
                log_say("the profiles do not change: %s", ret_profiles->problem);
                (void)json_object_update(ret_profiles->active, kept.active);
                (void)json_object_update(ret_profiles->inactive, kept.inactive);
                return 0;
        }
        merge(matrix, &kept, used, ret_profiles);
        if (state.dir_fd >= 0 &&
            !(json_equal(ret_profiles->active, kept.active) && json_equal(ret_profiles->inactive, kept.inactive)))
                keep(&state, ret_profiles);
        return 0;
}

int profiles_find(const struct profiles *profiles, const char *name, const json_t **ret_profile, struct error *error)
{
        *ret_profile = json_object_get(profiles->active, name);
        if (*ret_profile != NULL)
                return 0;
        if (json_object_get(profiles->inactive, name) != NULL)
                return fail_because(error, ESTALE, "find profile", name,
                                    "profile \"%.200s\" is inactive: %.200s no longer has it", name, path_of_file());
        return fail_because(error, ENOENT, "find profile", name, "there is no profile \"%.200s\"%s%.300s", name,
                            profiles->problem[0] != '\0' ? "; the file was rejected: " : "", profiles->problem);
}

void profiles_release(struct profiles *profiles)
{
        json_decref(profiles->active);
        json_decref(profiles->inactive);
        profiles->active = profiles->inactive = NULL;
}
