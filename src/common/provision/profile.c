/* SPDX-License-Identifier: Apache-2.0 */
#include "provision/profile.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/reply.h"
#include "base/text.h"
#include "block/filesystem.h"
#include "pool/pool_kind.h"
#include "pool/record.h"
#include "process/log.h"
#include "provision/profile_file.h"

#define KEPT "profiles.set" /* beside the records, and no name of one */

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

        return json_member_text(mount, "fs_type");
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

int profile_check_type(const json_t *profile, const char *name, const char *volume, struct error *error)
{
        char why[sizeof error->reason];

        (void)snprintf(why, sizeof why, "profile \"%.200s\", \"fs_type\": ", name);
        return filesystem_check_type(profile_fs_type(profile), volume, why, error);
}

int profile_check(const json_t *profile, const char *name, const struct pool *pool, struct error *error)
{
        int r = pool_kind_check_parameters(pool->kind, profile_parameters(profile), error);

        if (r < 0 || !pool->kind->no_device)
                return r < 0 ? r : profile_check_type(profile, name, name, error);
        if (!profile_is_block(profile) && profile_fs_type(profile)[0] == '\0')
                return 0;
        return fail_because(error, EINVAL, "read profile", name,
                            "volumes in pools of type %s have no device and no filesystem of their own; leave out "
                            "\"block\" and \"fs_type\"",
                            pool->kind->type);
}

need_set profile_needs(const json_t *profile, const struct pool *pool)
{
        need_set needs = pool != NULL ? pool_kind_parameter_needs(pool->kind, profile_parameters(profile)) : 0;
        bool bare = profile_is_block(profile) || (pool != NULL && pool->kind->no_device);

        return needs | (bare ? 0 : filesystem_needs(profile_fs_type(profile)));
}

/* ---- the set */

/* A part of what was kept; empty where it cannot be used. */
static json_t *read_part(const json_t *file, const char *key)
{
        json_t *part = json_object_get(file, key);
        char complaint[FILE_KEY_COMPLAINT_SIZE];
        const char *name;
        json_t *profile;

        if (!json_is_object(part))
                return json_object();
        json_object_foreach (part, name, profile)
                (void)profile_spell(profile, complaint); /* an earlier version kept it as the file had it */
        return json_incref(part);
}

/* A damaged file is none, and is set aside. Another failure to read it says nothing about it. */
static int read_kept(const struct state *state, bool set_aside, struct profiles *kept, struct error *error)
{
        cleanup_json json_t *file = NULL;
        char aside[STATE_ASIDE_SIZE];
        int r = state->dir_fd < 0 ? -ENOENT : json_file_load(state->dir_fd, KEPT, JSON_OBJECT, &file, error);

        if (r < 0 && r != -ENOENT && r != -EBADMSG)
                return r;
        if (r == -EBADMSG && set_aside) {
                state_set_aside(state, KEPT, aside);
                log_failure("the set of profiles is damaged; it was renamed to %s", aside);
        }
        kept->active = read_part(file, "active");
        kept->inactive = read_part(file, "inactive");
        return 0;
}

static void keep(const struct state *state, const struct profiles *profiles)
{
        cleanup_json json_t *file = json_pack("{s:O, s:O}", "active", profiles->active, "inactive", profiles->inactive);
        int r = json_file_replace(state->dir_fd, KEPT, file, FILE_DURABLE);

        if (r < 0)
                log_say("the set of profiles cannot be kept: %s", error_text(-r));
}

/* What a profile's volumes were made of: a selector is for new ones only. */
static const char *const frozen[] = { "volume_capabilities", "create_parameters" };

/* The frozen member that differs; NULL: none. */
static const char *find_change(const json_t *was, const json_t *profile)
{
        for (size_t i = 0; i < sizeof frozen / sizeof frozen[0]; i++) {
                json_t *one = json_object_get(was, frozen[i]);
                json_t *other = json_object_get(profile, frozen[i]);

                if (one != other && !json_equal(one, other)) /* NULL equals nothing, not even itself */
                        return frozen[i];
        }
        return NULL;
}

static const json_t *find_known(const struct profiles *kept, const char *name)
{
        return json_object_get(kept->active, name) ?: json_object_get(kept->inactive, name);
}

static int note_user(const struct provision_record *record, const char *stem, void *argument, struct error *error)
{
        json_t *changed = argument; /* name -> the member that differs */
        const char *member;

        (void)stem;
        member = record != NULL ? json_string_value(json_object_get(changed, record->profile)) : NULL;
        if (member == NULL)
                return 0;
        return fail_because(error, EBADMSG, "read profiles", record->profile,
                            "profile \"%.128s\": \"%s\" cannot change: volume \"%.128s\" was made with it",
                            record->profile, member, record->name);
}

/* A volume's profile does not change. The records are read only where a known profile has changed. */
static int check_frozen(const json_t *matrix, const struct profiles *kept, const struct state *state, bool set_aside,
                        struct error *error)
{
        cleanup_json json_t *changed = json_object();
        const char *name;
        json_t *profile;

        json_object_foreach ((json_t *)matrix, name, profile) {
                const json_t *was = find_known(kept, name);
                const char *member = was != NULL ? find_change(was, profile) : NULL;

                if (member != NULL && json_object_set_new(changed, name, json_string(member)) < 0)
                        return fail(error, ENOMEM, "read profiles", name);
        }
        return state->dir_fd >= 0 && json_object_size(changed) > 0
                       ? provision_record_each(state, set_aside, note_user, changed, error)
                       : 0;
}

static void merge(const json_t *matrix, const struct profiles *kept, struct profiles *ret_profiles)
{
        const char *name;
        json_t *profile;

        (void)json_object_update(ret_profiles->active, (json_t *)matrix);
        json_object_foreach (kept->active, name, profile)
                if (json_object_get(matrix, name) == NULL)
                        (void)json_object_set(ret_profiles->inactive, name, profile);
        json_object_foreach (kept->inactive, name, profile)
                if (json_object_get(matrix, name) == NULL)
                        (void)json_object_set(ret_profiles->inactive, name, profile);
}

int profiles_load(const char *state_dir, struct profiles *ret_profiles, struct error *error)
{
        const uint64_t key = hash_text(KEPT "/"); /* no volume's (volume_record_key()) */
        cleanup_profiles struct profiles kept = {};
        cleanup_json json_t *matrix = NULL;
        cleanup_state struct state state = STATE_NONE; /* with a lock of its own, which ends here */
        struct error broken;
        int r;

        *ret_profiles =
                (struct profiles){ .active = json_object(), .inactive = json_object(), .ignored = json_array() };
        r = provision_record_open(state_dir, /* create= */ true, &state, error);
        if (r == -EROFS || r == -ENOSPC || r == -EDQUOT)
                r = -ENOENT; /* then the set is not kept */
        if (r == 0 && (r = state_lock(&state, key, error)) < 0)
                return r;
        if (r < 0 && r != -ENOENT)
                return r;
        if ((r = read_kept(&state, /* set_aside= */ true, &kept, error)) < 0)
                return r;
        if ((r = profile_file_read(&matrix, ret_profiles->ignored, &broken)) == 0)
                r = check_frozen(matrix, &kept, &state, /* set_aside= */ true, &broken);
        if (r < 0) {
                (void)snprintf(ret_profiles->problem, sizeof ret_profiles->problem, "%.200s: %.300s",
                               profile_file_path(), error_why(&broken));
                log_say("the profiles do not change: %s", ret_profiles->problem);
                (void)json_object_update(ret_profiles->active, kept.active);
                (void)json_object_update(ret_profiles->inactive, kept.inactive);
                return 0;
        }
        merge(matrix, &kept, ret_profiles);
        if (state.dir_fd >= 0 &&
            !(json_equal(ret_profiles->active, kept.active) && json_equal(ret_profiles->inactive, kept.inactive)))
                keep(&state, ret_profiles);
        return 0;
}

int profiles_check_changes(const char *state_dir, const json_t *matrix, struct error *error)
{
        cleanup_profiles struct profiles kept = {};
        cleanup_state struct state state = STATE_NONE;
        int r = provision_record_open(state_dir, /* create= */ false, &state, error);

        if (r < 0)
                return r == -ENOENT ? 0 : r;
        if ((r = read_kept(&state, /* set_aside= */ false, &kept, error)) < 0)
                return r;
        return check_frozen(matrix, &kept, &state, /* set_aside= */ false, error);
}

json_t *profiles_inactive(const struct profiles *profiles)
{
        const json_t *ignored;
        const char *name;
        json_t *names = json_array();

        json_object_foreach (profiles->inactive, name, ignored)
                (void)json_array_append_new(names, reply_printable(name));
        return names;
}

json_t *profiles_ignored(const struct profiles *profiles)
{
        if (profiles->problem[0] != '\0' || json_array_size(profiles->ignored) == 0)
                return NULL;
        return json_incref(profiles->ignored);
}

int profiles_find(const struct profiles *profiles, const char *name, const json_t **ret_profile, struct error *error)
{
        *ret_profile = json_object_get(profiles->active, name);
        if (*ret_profile != NULL)
                return 0;
        if (json_object_get(profiles->inactive, name) != NULL)
                return fail_because(error, ESTALE, "find profile", name,
                                    "profile \"%.200s\" is inactive: %.200s no longer has it", name,
                                    profile_file_path());
        return fail_because(error, ENOENT, "find profile", name, "there is no profile \"%.200s\"", name);
}

void profiles_explain(const struct profiles *profiles, struct error *error)
{
        char reason[sizeof error->reason];

        if (profiles->problem[0] == '\0' || strstr(error->reason, profiles->problem) != NULL)
                return;
        (void)snprintf(reason, sizeof reason, "%.280s; " PROFILES_REJECTED "%.200s", error_why(error),
                       profiles->problem);
        (void)text_copy(error->reason, sizeof error->reason, reason);
}

void profiles_release(struct profiles *profiles)
{
        json_decref(profiles->active);
        json_decref(profiles->inactive);
        json_decref(profiles->ignored);
        profiles->active = profiles->inactive = profiles->ignored = NULL;
}
