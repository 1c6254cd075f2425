/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/request/request_batch.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/json_value.h"
#include "base/sort.h"
#include "base/text.h"
#include "container/reference.h"
#include "inject/request/request.h"
#include "inject/request/request_keys.h"
#include "inject/request/source.h"
#include "state/config.h"

#define KINDS_MAX 15

static int fail_entry(const char *key, size_t index, int r, struct error *error)
{
        char reason[sizeof error->reason];

        (void)text_copy(reason, sizeof reason, error->reason);
        (void)snprintf(error->reason, sizeof error->reason, "%.128s[%zu]: %.300s", key, index, reason);
        return r;
}

static bool has_option(const json_t *options, const char *const *names)
{
        const json_t *option;
        size_t i;

        json_array_foreach (options, i, option)
                if (json_is_string(option) && text_among(json_string_value(option), names))
                        return true;
        return false;
}

/* The kind with this word; NULL: none. */
static const struct source_kind *find_kind(const struct request *request, const char *word)
{
        for (const struct source_kind *const *kind = request->sources; *kind != NULL; kind++)
                if (strcmp((*kind)->word, word) == 0)
                        return *kind;
        return NULL;
}

/* The kind that such an entry of an OCI configuration means by its options, else by its type; NULL: none. */
static const struct source_kind *find_oci_kind(const struct request *request, const char *type, const json_t *options)
{
        const struct source_kind *const *kinds = request->sources;

        for (size_t i = 0; kinds[i] != NULL; i++)
                if (kinds[i]->oci_options != NULL && has_option(options, kinds[i]->oci_options))
                        return kinds[i];
        for (size_t i = 0; type != NULL && kinds[i] != NULL; i++)
                if (kinds[i]->oci_types != NULL && text_among(type, kinds[i]->oci_types))
                        return kinds[i];
        return NULL;
}

static void set_kind(struct request *entry, const struct source_kind *kind)
{
        entry->source_kind = kind;
        entry->keys = kind->keys;
}

/* The kind of mount that an entry of an OCI "mounts" array means: what crun and runc would do with it. */
static int oci_kind(struct request *entry, const json_t *value, struct error *error)
{
        const char *type = json_string_value(json_object_get(value, "type"));
        const char *source = json_string_value(json_object_get(value, "source"));
        const struct source_kind *kind = find_oci_kind(entry, type, json_object_get(value, "options"));

        for (size_t i = 0; kind == NULL && type != NULL && entry->sources[i] != NULL; i++)
                if (entry->sources[i]->oci_others && source != NULL &&
                    (source[0] == '/' || strchr(source, '=') != NULL)) {
                        kind = entry->sources[i];
                        entry->fs_type = type;
                }
        if (kind == NULL)
                return fail_because(error, EINVAL, OPERATION_PARSE, "type",
                                    "type: \"%.64s\" cannot be mounted in a running container",
                                    type != NULL ? type : "");
        set_kind(entry, kind);
        return 0;
}

/* An entry as in an OCI bundle's config.json: destination, type, source, options. */
static int parse_oci_entry(struct request *entry, const json_t *value, struct error *error)
{
        const char *key;
        json_t *part;
        int r = oci_kind(entry, value, error);

        json_object_foreach ((json_t *)value, key, part) {
                if (r < 0)
                        return r;
                if (strcmp(key, "destination") == 0)
                        r = request_key_take_as(entry, "target", key, part, error);
                else if (strcmp(key, "options") == 0)
                        r = request_key_take(entry, key, part, error);
                else if (strcmp(key, "source") == 0 && entry->source_kind->oci_source != NULL)
                        r = request_key_take_as(entry, entry->source_kind->oci_source, key, part, error);
                else if (strcmp(key, "source") != 0 && strcmp(key, "type") != 0)
                        return key_unknown(key, error);
        }
        return r;
}

/* No kind has the entry's word as its type. */
static int refuse_type(const struct request *entry, struct error *error)
{
        const char *words[KINDS_MAX + 1] = {};

        for (size_t i = 0; i < KINDS_MAX && entry->sources[i] != NULL; i++)
                words[i] = entry->sources[i]->word;
        return key_refuse_word(words, "type", error);
}

static int parse_entry(struct request *entry, const json_t *value, struct error *error)
{
        const char *word = NULL;
        const struct source_kind *kind;
        const char *key;
        json_t *part;
        int r = 0;

        if (!json_is_object(value))
                return json_value_refuse(error, "mounts", "must be an array of objects");
        if ((part = json_object_get(value, "type")) != NULL &&
            (r = json_value_string("type", part, JSON_VALUE_ID_MAX, &word, error)) < 0)
                return r;
        if ((part = json_object_get(value, "source")) != NULL &&
            (r = json_value_string("source", part, JSON_VALUE_STRING_MAX, &key, error)) < 0)
                return r;
        kind = word != NULL ? find_kind(entry, word) : NULL;
        if (json_object_get(value, "destination") != NULL)
                return parse_oci_entry(entry, value, error);
        if (word == NULL)
                return json_value_refuse(error, "type", "is missing");
        if (kind == NULL)
                return refuse_type(entry, error);
        set_kind(entry, kind);
        json_object_foreach ((json_t *)value, key, part) {
                if (strcmp(key, "type") == 0)
                        continue;
                if (request_key_has(entry, key, REQUEST_OF_CALL))
                        return json_value_refuse(error, key, "belongs to the batch, not to an entry");
                if ((r = request_key_take(entry, key, part, error)) < 0)
                        return r;
        }
        return 0;
}

int request_batch_add(struct request *request, const char *key, const json_t *value, struct error *error)
{
        size_t count = json_is_array(value) ? json_array_size(value) : 1;
        struct request *entries;

        if (!json_is_array(value) && !json_is_object(value))
                return json_value_refuse(error, key, "must be an array of mounts");
        if (count > REQUEST_ENTRIES_MAX - request->entry_count)
                return fail_because(error, EINVAL, OPERATION_PARSE, key, "%.200s: more than %d mounts", key,
                                    REQUEST_ENTRIES_MAX);
        entries = reallocarray(request->entries, request->entry_count + count + 1, sizeof *entries);
        if (entries == NULL)
                return fail(error, ENOMEM, OPERATION_PARSE, key);
        request->entries = entries;
        for (size_t i = 0; i < count; i++) {
                struct request *entry = &entries[request->entry_count++];
                int r;

                request_init(entry, REQUEST_MOUNT, /* keys= */ NULL);
                entry->sources = request->sources;
                entry->said = json_is_array(value) ? json_array_get(value, i) : value;
                r = parse_entry(entry, json_is_array(value) ? json_array_get(value, i) : value, error);
                if (r < 0)
                        return fail_entry(key, i, r, error);
        }
        return 0;
}

static int compare_depths(const void *one, const void *other, const void *context)
{
        const size_t a = text_count(((const struct request *)one)->target, '/');
        const size_t b = text_count(((const struct request *)other)->target, '/');

        (void)context;
        return (a > b) - (a < b);
}

/* Parents before children: by the number of components. */
static void sort_entries(struct request *request)
{
        for (size_t i = 0; i < request->entry_count; i++)
                request->entries[i].index = i;
        sort_few(request->entries, request->entry_count, sizeof *request->entries, compare_depths, NULL);
}

/* What the entries of a batch take from it, and what they may not have in common. */
int request_batch_finish(struct request *request, struct error *error)
{
        if (request->entry_count == 0)
                return json_value_refuse(error, "mounts", "is missing");
        for (size_t i = 0; i < request->entry_count; i++) {
                struct request *entry = &request->entries[i];
                int r = 0;

                if (!entry->has_container && request->has_container) {
                        entry->container = request->container;
                        entry->has_container = true;
                }
                entry->replace = entry->replace || (request->replace && request_key_is_for(entry, "replace"));
                if (request_key_given(request, "persist") && !request_key_given(entry, "persist") &&
                    (r = request_key_take(entry, "persist", request->persist ? json_true() : json_false(), error)) < 0)
                        return fail_entry("mounts", i, r, error);
                entry->dry_run = request->dry_run;
                entry->timeout_seconds = request->timeout_seconds;
                if ((r = request_rules_apply(entry, error)) < 0)
                        return fail_entry("mounts", i, r, error);
                for (size_t j = 0; j < i; j++)
                        if (container_reference_same(&entry->container, &request->entries[j].container) &&
                            strcmp(entry->target, request->entries[j].target) == 0)
                                return fail_because(error, EINVAL, OPERATION_PARSE, "mounts",
                                                    "mounts[%zu]: %s is the target of mounts[%zu], too", i,
                                                    entry->target, j);
        }
        sort_entries(request);
        return 0;
}

/* ---- what is wanted in a container whenever it runs (state/wish), as entries of a batch */

int request_wanted_add(struct request *request, const struct wish_record *wanted,
                       const struct container_reference *known, struct error *error)
{
        size_t first = request->entry_count;
        const json_t *wish;
        int r = 0;
        size_t i;

        json_array_foreach (wanted->mounts, i, wish)
                if (r == 0)
                        r = request_batch_add(request, "wanted", json_object_get(wish, "request"), error);
        for (i = first; i < request->entry_count; i++) {
                struct request *entry = &request->entries[i];

                entry->container = *known;
                entry->has_container = true;
                entry->wanted = true;
                entry->wanted_source = json_member_text(json_array_get(wanted->mounts, i - first), "source");
                entry->persist = false; /* as it is: nothing is written down again */
        }
        return r;
}

int request_wanted_add_all(struct request *request, struct error *error)
{
        static struct container container = CONTAINER_NONE; /* static: the entries point to its texts */
        static struct wish_record wanted;                   /* likewise */
        cleanup_state struct state state = STATE_NONE;
        struct container_reference known;
        char state_dir[PATH_MAX];
        int r = request->container.id == NULL && request->container.unit == NULL
                        ? request_rules_refuse_nameless("wanted", error)
                        : named_container_pin(&request->container, &container, error);

        if (r < 0)
                return r;
        container_release(&container);
        if (container.identity[0] == '\0' && request->container.or_pid != 0 &&
            request->container.or_pid == container.pid)
                return request_rules_refuse_nameless("wanted", error);
        if (container.identity[0] == '\0' || (r = config_state_dir(state_dir, error)) < 0)
                return r;
        if ((r = wish_open(state_dir, /* create= */ false, &state, error)) < 0 ||
            (r = wish_read(&state, container.identity, &wanted, error)) < 0)
                return r == -ENOENT ? 0 : r;
        known = (struct container_reference){ .pid = container.pid,
                                              .start_time = container.start_time,
                                              .known_as = container.id,
                                              .identity = container.identity };
        return request_wanted_add(request, &wanted, &known, error);
}
