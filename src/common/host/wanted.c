/* SPDX-License-Identifier: Apache-2.0 */
#include "host/wanted.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "block/filesystem.h"
#include "host/probes.h"
#include "host/state_path.h"
#include "inject/kinds/source_raw.h"
#include "inject/request/source.h"
#include "pool/pool.h"
#include "pool/pool_kind.h"
#include "provision/profile.h"
#include "provision/profile_file.h"
#include "state/call_counts.h"
#include "state/policy.h"
#include "volume/kinds.h"

/* ---- needs by name */

static void want(struct wanted *wanted, const char *name, need_set needs)
{
        json_t *before = json_object_get(wanted->needs, name);

        if (needs != 0)
                (void)json_object_set_new(wanted->needs, name,
                                          json_integer((json_int_t)(needs | (need_set)json_integer_value(before))));
}

/* What a kind of mount needs, and what it is called in "kinds" of a policy, and of a request. */
static need_set needs_of_mount(const char *word)
{
        for (size_t i = 0; source_kinds[i] != NULL; i++)
                if (strcmp(source_kinds[i]->word, word) == 0)
                        return source_kinds[i]->needs;
        return 0;
}

static need_set needs_of_volume(const char *word)
{
        const struct volume_kind *kind = volume_kind_find(word);

        if (kind == NULL)
                return 0;
        return kind->needs | (kind->has_device ? filesystem_needs("") : 0);
}

/* ---- files */

static struct wanted_file *add_file(struct wanted *wanted, const char *name)
{
        struct wanted_file *file = &wanted->files[wanted->file_count];

        if (wanted->file_count + 1 < WANTED_FILES_MAX)
                wanted->file_count++; /* the last is for those that are too many */
        *file = (struct wanted_file){};
        (void)snprintf(file->name, sizeof file->name, "%s", name);
        return file;
}

static void tell(struct wanted_file *file, int r, const struct error *error)
{
        if (r < 0 && strstr(error_why(error), error->subject) == NULL && error->errnum == EBADMSG)
                host_found(&file->finding, HOST_MISSING, "%s: %s", error->subject, error_why(error));
        else if (r < 0)
                host_found_error(&file->finding, error);
        else
                host_found(&file->finding, HOST_OK, "it can be read, or there is none");
}

static void read_policy(struct wanted *wanted, struct error *error)
{
        static const char *const sections[] = { "annotations", "volumes" };
        struct wanted_file *file = add_file(wanted, "policy.json");
        cleanup_policy struct policy policy = {};
        char name[64];
        int r = policy_load(&policy, sections[0], error);

        for (size_t section = 0; r == 0 && section < 2; section++) {
                policy_turn_to(&policy, sections[section]);
                (void)snprintf(name, sizeof name, "policy.json (%s)", sections[section]);
                for (size_t i = 0; section == 0 && source_kinds[i] != NULL; i++)
                        if (policy_lists(&policy, "kinds", source_kinds[i]->word))
                                want(wanted, name, source_kinds[i]->needs);
                for (size_t i = 0; section == 1 && volume_kinds[i] != NULL; i++)
                        if (policy_lists(&policy, "kinds", volume_kinds[i]->word))
                                want(wanted, name, needs_of_volume(volume_kinds[i]->word));
                if (policy_says(&policy, "raw"))
                        want(wanted, name, source_raw.needs);
        }
        tell(file, r, error);
}

/* ---- profiles: what is wrong with one shows in the pools that it selects */

struct profiles_seen {
        struct wanted *wanted;
        json_t *matrix;
        size_t first; /* row of the first profile; the others follow */
};

static struct wanted_file *row_of_profile(const struct profiles_seen *seen, size_t index)
{
        size_t row = seen->first + index;

        return &seen->wanted->files[row < seen->wanted->file_count ? row : WANTED_FILES_MAX - 1];
}

static void tell_unfit(struct wanted_file *file, const char *what, const struct error *error)
{
        host_found(&file->finding, HOST_MISSING, "%s%s", what, error_why(error));
        file->advice = "correct the profile in profiles.json";
}

static void read_profiles(struct profiles_seen *seen, struct error *error)
{
        struct wanted_file *file = add_file(seen->wanted, "profiles.json");
        char text[WANTED_NAME_MAX];
        const char *name;
        json_t *profile;
        int r = profile_file_read(&seen->matrix, /* ignored= */ NULL, error);

        if (r == 0 && profiles_check_changes(seen->wanted->config.state_dir, seen->matrix, error) == -EBADMSG)
                r = -EBADMSG; /* what of the state directory cannot be read is in its own row */
        tell(file, r, error);
        seen->first = seen->wanted->file_count;
        json_object_foreach (seen->matrix, name, profile) {
                (void)snprintf(text, sizeof text, "profile %.128s", name);
                file = add_file(seen->wanted, text);
                host_found(&file->finding, HOST_UNKNOWN, "no pool of this node is one that it selects");
                file->advice = "nothing, if its pools are on other nodes; else correct its selector";
                if (!profile_is_block(profile) && profile_check_type(profile, name, name, error) < 0)
                        tell_unfit(file, "", error);
        }
}

/* A pool that can have its volumes is enough. */
static void see_pool(const struct profiles_seen *seen, const struct pool *pool, struct error *error)
{
        size_t index = 0;
        const char *name;
        json_t *profile;

        json_object_foreach (seen->matrix, name, profile) {
                struct wanted_file *file = row_of_profile(seen, index++);
                char what[WANTED_NAME_MAX + 32];

                if (!profile_selects(profile, pool))
                        continue;
                file->selected = true;
                if (profile_check(profile, name, pool, error) == 0) {
                        host_found(&file->finding, HOST_OK,
                                   "pool %.128s can have its volumes, and what those need is "
                                   "in rows of its own",
                                   pool->name);
                        want(seen->wanted, file->name, profile_needs(profile, pool));
                } else if (file->finding.state != HOST_OK) {
                        (void)snprintf(what, sizeof what, "pool %.128s cannot have its volumes: ", pool->name);
                        tell_unfit(file, what, error);
                }
        }
}

static void end_profiles(struct profiles_seen *seen)
{
        size_t index = 0;
        const char *name;
        json_t *profile;

        json_object_foreach (seen->matrix, name, profile) {
                const struct wanted_file *file = row_of_profile(seen, index++);

                if (!file->selected)
                        want(seen->wanted, file->name, profile_needs(profile, /* pool= */ NULL));
        }
        json_decref(seen->matrix);
}

/* ---- pools */

/* The pool "default" that no file names is made with its first volume. */
static bool is_to_be_made(const struct config *config, const struct pool *pool)
{
        size_t length = strlen(config->state_dir);

        return strcmp(pool->name, POOL_DEFAULT) == 0 && pool->kind->has_images &&
               strncmp(pool->path, config->state_dir, length) == 0 && access(pool->path, F_OK) < 0 && errno == ENOENT;
}

static int add_pool(const struct pool *pool, void *argument, struct error *error)
{
        const struct profiles_seen *profiles = argument;
        struct wanted *wanted = profiles->wanted;
        char name[WANTED_NAME_MAX];
        struct wanted_file *file;

        (void)snprintf(name, sizeof name, "pool %.128s", pool->name);
        file = add_file(wanted, name);
        if (pool->kind == NULL) {
                tell(file, -EBADMSG, error);
                return 0;
        }
        file->pool = true;
        see_pool(profiles, pool, error);
        if (!is_to_be_made(&wanted->config, pool)) /* nobody has asked for it yet */
                want(wanted, name, pool->kind->needs | (pool->kind->no_device ? 0 : filesystem_needs("")));
        return 0;
}

int wanted_read(const json_t *kinds, struct wanted *ret_wanted, struct error *error)
{
        struct profiles_seen profiles = { .wanted = ret_wanted };
        struct error broken = {};
        struct wanted_file *file;
        const json_t *kind;
        size_t i;
        int r;

        ret_wanted->needs = json_object();
        call_counts_never();
        tell(add_file(ret_wanted, "config.json"), config_load(&ret_wanted->config, &broken), &broken);
        file = add_file(ret_wanted, "state directory");
        file->advice = state_path_look(ret_wanted->config.state_dir, &file->finding);
        read_policy(ret_wanted, &broken);
        read_profiles(&profiles, &broken);
        r = pool_each(&ret_wanted->config, add_pool, &profiles, error);
        end_profiles(&profiles);
        if (r < 0)
                tell(add_file(ret_wanted, "pools.d"), r, error);
        json_array_foreach (kinds, i, kind) {
                const char *word = json_string_value(kind);

                want(ret_wanted, "the request", needs_of_mount(word) | needs_of_volume(word));
        }
        return 0;
}

void wanted_pool_measure(const struct config *config, struct wanted_file *file)
{
        const char *name = file->name + strlen("pool ");
        struct pool_measure measure = {};
        struct error error = {};
        struct pool pool;
        int r = pool_find(config, name, &pool, &error);

        if (r == 0 && is_to_be_made(config, &pool)) {
                host_found(&file->finding, HOST_OK, "it is made with its first volume");
                return;
        }
        if (r == 0 && (pool.kind->needs & NEED(DEVICE_MAPPER)) != 0 && !device_mapper_is_registered()) {
                host_found(&file->finding, HOST_UNKNOWN,
                           "not measured: the kernel has not loaded dm_mod, and lvm would load it");
                file->advice = "modprobe dm_mod and run host-check again";
                return;
        }
        pool.only_read = true;
        if (r == 0)
                r = pool.kind->measure(config, &pool, /* parameters= */ NULL, &measure, &error);
        if (r == 0 && measure.unknown)
                host_found(&file->finding, HOST_UNKNOWN, "not measured: its server is asked when a volume is made");
        else if (r == 0)
                host_found(&file->finding, HOST_OK, "%llu MiB of %llu MiB are available",
                           (unsigned long long)(measure.available_bytes >> 20),
                           (unsigned long long)(measure.total_bytes >> 20));
        else {
                host_found_error(&file->finding, &error);
                file->advice = pool_kind_hint(&error);
        }
}

/* ---- what has a need */

static bool has_word(const json_t *words, const char *word)
{
        const json_t *other;
        size_t i;

        json_array_foreach (words, i, other)
                if (strcmp(json_string_value(other), word) == 0)
                        return true;
        return false;
}

json_t *wanted_kind_words(void)
{
        json_t *words = json_array();

        for (size_t i = 0; source_kinds[i] != NULL; i++)
                (void)json_array_append_new(words, json_string(source_kinds[i]->word));
        for (size_t i = 0; volume_kinds[i] != NULL; i++)
                if (!has_word(words, volume_kinds[i]->word))
                        (void)json_array_append_new(words, json_string(volume_kinds[i]->word));
        return words;
}

json_t *wanted_by(const struct wanted *wanted, enum need need, bool *ret_required)
{
        const need_set bit = (need_set)1 << need;
        json_t *names = json_array();
        const char *name;
        json_t *set;
        char text[64];

        json_object_foreach (wanted->needs, name, set)
                if (((need_set)json_integer_value(set) & bit) != 0)
                        (void)json_array_append_new(names, json_string(name));
        if (host_rows[need].everyone)
                (void)json_array_append_new(names, json_string(NEEDED_BY_ALL));
        *ret_required = json_array_size(names) > 0;
        for (size_t i = 0; source_kinds[i] != NULL; i++)
                if ((source_kinds[i]->needs & bit) != 0) {
                        (void)snprintf(text, sizeof text, "mount-%s", source_kinds[i]->word);
                        (void)json_array_append_new(names, json_string(text));
                }
        for (size_t i = 0; volume_kinds[i] != NULL; i++)
                if ((needs_of_volume(volume_kinds[i]->word) & bit) != 0) {
                        (void)snprintf(text, sizeof text, "volumes of type %s", volume_kinds[i]->word);
                        (void)json_array_append_new(names, json_string(text));
                }
        if (host_rows[need].use != NULL)
                (void)json_array_append_new(names, json_string(host_rows[need].use));
        return names;
}
