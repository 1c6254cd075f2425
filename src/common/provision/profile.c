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

static bool all_strings(const json_t *array)
{
        const json_t *item;
        size_t i;

        json_array_foreach (array, i, item)
                if (!json_is_string(item))
                        return false;
        return json_is_array(array);
}

/* CSI lets them have 4 KiB altogether. */
static bool is_too_long(const json_t *flags)
{
        const json_t *flag;
        size_t bytes = 0;
        size_t i;

        json_array_foreach (flags, i, flag)
                bytes += json_string_length(flag);
        return bytes > FLAGS_BYTES_MAX;
}

/* What is null is not set: as protobuf's JSON has it. */
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

static const char *wrong_with_selector(const json_t *profile)
{
        const json_t *plugin = json_object_get(profile, "csi_plugin_type_selector");
        const json_t *provider = json_object_get(profile, "resource_provider_selector");
        const json_t *list = json_object_get(provider, "resource_providers");
        const json_t *item;
        size_t i;

        if ((plugin != NULL) == (provider != NULL))
                return "has not one of \"resource_provider_selector\" and \"csi_plugin_type_selector\"";
        if (plugin != NULL)
                return json_string_length(json_object_get(plugin, "plugin_type")) > 0 ? NULL : "has no \"plugin_type\"";
        if (!json_is_array(list))
                return "has no \"resource_providers\"";
        json_array_foreach (list, i, item)
                if (json_string_length(json_object_get(item, "type")) == 0 ||
                    json_string_length(json_object_get(item, "name")) == 0)
                        return "has a resource provider without \"type\" and \"name\"";
        return NULL;
}

static const char *wrong_with_capabilities(const json_t *profile)
{
        static const char *const modes[] = { "SINGLE_NODE_WRITER",      "SINGLE_NODE_READER_ONLY",
                                             "MULTI_NODE_READER_ONLY",  "MULTI_NODE_SINGLE_WRITER",
                                             "MULTI_NODE_MULTI_WRITER", NULL };
        const json_t *mount = json_object_get(capabilities_of(profile), "mount");
        const json_t *block = json_object_get(capabilities_of(profile), "block");
        const json_t *fs_type = json_object_get(mount, "fs_type");
        const json_t *flags = json_object_get(mount, "mount_flags");
        const char *mode = profile_access_mode(profile);

        if (json_is_object(mount) == json_is_object(block))
                return "has not one of \"mount\" and \"block\" in \"volume_capabilities\"";
        if (fs_type != NULL && (!json_is_string(fs_type) || json_string_length(fs_type) > 31))
                return "has an \"fs_type\" that is no filesystem's name";
        if (flags != NULL && (!all_strings(flags) || is_too_long(flags)))
                return "has \"mount_flags\" that are no array of strings, or too long a one";
        if (mode == NULL || !text_among(mode, modes))
                return "has no \"access_mode\" with a \"mode\" as CSI has them";
        return NULL;
}

static const char *wrong_with_parameters(const json_t *profile)
{
        const json_t *parameters = profile_parameters(profile);
        const char *key;
        const json_t *value;

        if (parameters != NULL && !json_is_object(parameters))
                return "has \"create_parameters\" that are no object";
        json_object_foreach ((json_t *)parameters, key, value)
                if (!json_is_string(value))
                        return "has \"create_parameters\" that are no strings";
        return NULL;
}

static const char *wrong_with(const char *name, const json_t *profile)
{
        const char *wrong = NULL;

        if (name[0] == '\0' || strlen(name) > NAME_BYTES_MAX)
                return "has a name of no, or of too many, bytes";
        if (!json_is_object(profile))
                return "is no object";
        wrong = wrong_with_selector(profile);
        wrong = wrong != NULL ? wrong : wrong_with_capabilities(profile);
        return wrong != NULL ? wrong : wrong_with_parameters(profile);
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
                return fail_because(error, EBADMSG, "read profiles", path, "there is no \"profile_matrix\"");
        drop_nulls(matrix);
        json_object_foreach (matrix, name, profile) {
                const char *wrong = wrong_with(name, profile);

                if (wrong != NULL)
                        return fail_because(error, EBADMSG, "read profiles", path, "the profile \"%.128s\" %s", name,
                                            wrong);
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
                (void)json_object_set_new(used, record->profile, json_true()); /* noted less, it may change: no more */
        return 0;
}

/* What was kept: both objects, empty where there is nothing that can be used. */
static void read_kept(const struct state *state, struct profiles *kept)
{
        cleanup_json json_t *file = NULL;
        struct error ignored;

        if (state->dir_fd >= 0)
                (void)json_file_load(state->dir_fd, KEPT, JSON_OBJECT, &file, &ignored); /* then there is none */
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

/* A profile that is used stays as it was when it was used first. */
static void merge(const json_t *matrix, const struct profiles *kept, const json_t *used, struct profiles *ret_profiles)
{
        const char *name;
        json_t *profile;

        json_object_foreach ((json_t *)matrix, name, profile) {
                json_t *was = json_object_get(kept->active, name) ?: json_object_get(kept->inactive, name);
                bool stays = was != NULL && json_object_get(used, name) != NULL;

                if (stays && !json_equal(was, profile))
                        log_say("the profile %s is in use, and stays as it is", name);
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
        cleanup_state struct state state = STATE_NONE; /* with a lock of its own, which is not held any longer */
        struct error broken;
        int r;

        *ret_profiles = (struct profiles){ .active = json_object(), .inactive = json_object() };
        r = provision_record_open(state_dir, /* create= */ true, &state, error);
        if (r == -EROFS || r == -ENOSPC || r == -EDQUOT)
                r = -ENOENT; /* then nothing is kept */
        if (r == 0 && ((r = state_lock(&state, key, error)) < 0 ||
                       (r = provision_record_each(&state, note_used, used, error)) < 0))
                return r;
        if (r < 0 && r != -ENOENT)
                return r;
        read_kept(&state, &kept);
        if (read_file(&matrix, &broken) < 0) {
                (void)snprintf(ret_profiles->problem, sizeof ret_profiles->problem, "%.200s: %.300s", path_of_file(),
                               error_why(&broken));
                log_say("the profiles stay as they were: %s", ret_profiles->problem);
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
                                    "the profile \"%.200s\" is inactive: %.200s has it no more", name, path_of_file());
        return fail_because(error, ENOENT, "find profile", name, "there is no profile \"%.200s\"%s%.300s", name,
                            profiles->problem[0] != '\0' ? "; the file was not taken: " : "", profiles->problem);
}

void profiles_release(struct profiles *profiles)
{
        json_decref(profiles->active);
        json_decref(profiles->inactive);
        profiles->active = profiles->inactive = NULL;
}
