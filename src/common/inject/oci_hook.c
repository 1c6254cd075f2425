/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/oci_hook.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "container/identity.h"
#include "inject/apply.h"
#include "inject/plan.h"
#include "inject/request/request_batch.h"
#include "inject/request/request_keys.h"
#include "inject/request/source.h"
#include "process/log.h"
#include "state/config.h"
#include "state/policy.h"
#include "state/state_dir.h"

#define ANNOTATION "io.flexgraft.mounts"
#define STATE_MAX_BYTES ((size_t)8 * 1024 * 1024) /* it has the annotations of all tools */
#define ANNOTATION_MAX_BYTES ((size_t)256 * 1024)
#define ANNOTATIONS_MAX 64
#define HOOK_TIMEOUT_S 20 /* runtimes have their own timeouts, perhaps long or none */

bool oci_hook_event(const char *word, enum oci_hook_event *ret_event)
{
        static const struct {
                const char *word;
                enum oci_hook_event event;
        } words[] = {
                { "createRuntime", HOOK_BEFORE },
                { "prestart", HOOK_BEFORE },
                { "poststart", HOOK_RUNNING },
                { "poststop", HOOK_ENDED },
        };

        for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
                if (strcmp(word, words[i].word) == 0) {
                        *ret_event = words[i].event;
                        return true;
                }
        return false;
}

static int fail_state(const char *key, const char *complaint, struct error *error)
{
        return fail_because(error, EINVAL, OPERATION_PARSE, key, "the container's state: %s %s", key, complaint);
}

static bool is_ours(const char *name)
{
        return text_starts(name, ANNOTATION) && (name[strlen(ANNOTATION)] == '\0' || name[strlen(ANNOTATION)] == '.');
}

/* The parser's refusal of the text that is what: the state, or an annotation. */
static int fail_text(const char *subject, const char *what, struct error *error)
{
        const struct error refusal = *error;

        return fail_because(error, EINVAL, OPERATION_PARSE, subject, "%.220s: %s", what, refusal.reason);
}

static int read_state(json_t **ret_state, struct error *error)
{
        int r = json_text_parse_stdin(STATE_MAX_BYTES, ret_state, error);

        if (r == -EINVAL)
                return fail_text("state", "the container's state", error);
        if (r < 0)
                return r;
        return json_is_object(*ret_state) ? 0 : fail_state("state", "is no object", error);
}

/* A device is asked for as by an annotation, and policy.json applies to it likewise. */
static int ask_for_volume(json_t *state, const struct oci_hook_volume *volume, struct error *error)
{
        cleanup_json json_t *mount =
                json_pack("{s:s, s:s, s:s}", "type", "volume", "volume", volume->name, "target", volume->target);
        char *text = volume->raw && json_object_set_new(mount, "raw", json_true()) < 0 ? NULL : json_text_make(mount);
        int r = text == NULL ? -ENOMEM
                             : json_object_set_new(state, "annotations", json_pack("{s:s}", ANNOTATION, text));

        free(text);
        return r < 0 ? fail(error, ENOMEM, OPERATION_PARSE, volume->name) : 0;
}

/*
 * What is wanted in the container: one lookup by what it is. A process that may not look into the state directory is
 * not the node's root, as an engine of a user's; nothing that is wanted is for its containers.
 */
static int read_wanted(struct oci_hook *hook, struct error *error)
{
        cleanup_state struct state state = STATE_NONE;
        char state_dir[PATH_MAX];
        int r;

        if (hook->id == NULL || hook->id[0] == '\0' || strlen(hook->id) >= CONTAINER_NAME_MAX ||
            strchr(hook->id, '/') != NULL)
                return 0; /* no container of which anything is wanted is called so */
        r = config_state_dir(state_dir, error);
        if (r == -EBADMSG && config_state_dir_despite(state_dir))
                r = 0; /* a comma there must not keep all containers of the node from starting */
        if (r == 0)
                r = wish_open(state_dir, /* create= */ false, &state, error);
        if (r < 0)
                return r == -ENOENT || r == -EACCES ? 0 : r;
        r = container_identity_oci(hook->id, hook->bundle != NULL ? hook->bundle : "", hook->identity);
        if (r < 0) /* what is wanted is not known */
                return fail(error, -r, "statx", hook->bundle);
        if (hook->identity[0] == '\0')
                return 0;
        r = wish_read(&state, hook->identity, &hook->wanted, error);
        return r == -ENOENT ? 0 : r;
}

bool oci_hook_concerns(const struct oci_hook *hook)
{
        return hook->asked || hook->wanted.mounts != NULL;
}

int oci_hook_read(struct oci_hook *ret_hook, enum oci_hook_event event, const struct oci_hook_volume *volume,
                  struct error *error)
{
        json_t *state;
        json_t *annotations;
        const char *name;
        json_int_t pid;
        json_t *value;
        int r;

        *ret_hook = (struct oci_hook){ .event = event };
        r = read_state(&ret_hook->state, error);
        state = ret_hook->state;
        if (r == 0 && volume != NULL)
                r = ask_for_volume(state, volume, error);
        if (r < 0)
                return r;
        annotations = json_object_get(state, "annotations");
        json_object_foreach (annotations, name, value) {
                if (is_ours(name))
                        ret_hook->asked = true;
        }
        ret_hook->id = json_string_value(json_object_get(state, "id"));
        ret_hook->bundle = json_string_value(json_object_get(state, "bundle"));
        if (volume == NULL && (r = read_wanted(ret_hook, error)) < 0)
                return r;
        if (!oci_hook_concerns(ret_hook))
                return 0; /* the hook does nothing, whatever else the state has */
        pid = json_integer_value(json_object_get(state, "pid")); /* absent or 0 at poststop */
        if (ret_hook->id == NULL || ret_hook->id[0] == '\0')
                return fail_state("id", "is missing", error);
        if (strlen(ret_hook->id) >= CONTAINER_NAME_MAX)
                return fail_state("id", "is longer than 387 bytes", error);
        if (pid < 0 || pid > INT_MAX)
                return fail_state("pid", "is not a process id", error);
        ret_hook->pid = (pid_t)pid;
        if (event != HOOK_ENDED && ret_hook->pid <= 0)
                return fail_state("pid", "is missing", error);
        if (event == HOOK_BEFORE && (ret_hook->bundle == NULL || ret_hook->bundle[0] != '/'))
                return fail_state("bundle", "is missing", error);
        return 0;
}

/* The directory where the runtime sets up the container's root: root.path of config.json, relative to the bundle. */
static int find_root(struct oci_hook *hook, struct error *error)
{
        cleanup_json json_t *config = NULL;
        char file[PATH_MAX];
        const char *path;
        int n;
        int r;

        n = snprintf(file, sizeof file, "%s/config.json", hook->bundle);
        if (n >= (int)sizeof file)
                return fail(error, ENAMETOOLONG, "open", hook->bundle);
        r = json_file_load(AT_FDCWD, file, JSON_OBJECT, &config, error);
        if (r < 0)
                return r;
        path = json_string_value(json_object_get(json_object_get(config, "root"), "path"));
        if (path == NULL || path[0] == '\0')
                return fail_because(error, EBADMSG, "read configuration", file, "root.path is missing");
        n = snprintf(hook->root, sizeof hook->root, "%s%s%s", path[0] == '/' ? "" : hook->bundle,
                     path[0] == '/' ? "" : "/", path);
        return n >= (int)sizeof hook->root ? fail(error, ENAMETOOLONG, "open", path) : 0;
}

static int by_name(const void *one, const void *other)
{
        return strcmp(*(const char *const *)one, *(const char *const *)other);
}

/* The names of the annotations for flexgraft, sorted; their count, or negative errno. */
static int list_annotations(const json_t *annotations, const char **ret_names, struct error *error)
{
        const char *name;
        json_t *value;
        int count = 0;

        json_object_foreach ((json_t *)annotations, name, value) {
                if (!is_ours(name))
                        continue;
                if (count == ANNOTATIONS_MAX)
                        return fail_because(error, EINVAL, OPERATION_PARSE, ANNOTATION, "more than %d annotations",
                                            ANNOTATIONS_MAX);
                ret_names[count++] = name;
        }
        qsort(ret_names, (size_t)count, sizeof *ret_names, by_name);
        return count;
}

/* Parses an annotation's value; hook->state owns the result. */
static int parse_annotation(struct oci_hook *hook, const char *name, json_t **ret_mounts, struct error *error)
{
        const json_t *value = json_object_get(json_object_get(hook->state, "annotations"), name);
        json_t *parsed = json_object_get(hook->state, "flexgraft");
        char what[sizeof "annotation " + 200];
        int r;

        if (!json_is_string(value))
                return fail_because(error, EINVAL, OPERATION_PARSE, name, "annotation %.200s: must be a string", name);
        if (json_string_length(value) > ANNOTATION_MAX_BYTES)
                return fail_because(error, EINVAL, OPERATION_PARSE, name, "annotation %.200s: longer than %zu KiB",
                                    name, ANNOTATION_MAX_BYTES / 1024);
        (void)snprintf(what, sizeof what, "annotation %.200s", name);
        r = json_text_parse(json_string_value(value), json_string_length(value), ret_mounts, error);
        if (r < 0)
                return r == -EINVAL ? fail_text(name, what, error) : r;
        if (parsed == NULL) {
                parsed = json_array();
                if (json_object_set_new(hook->state, "flexgraft", parsed) < 0)
                        parsed = NULL;
        }
        return json_array_append_new(parsed, *ret_mounts) < 0 ? fail(error, ENOMEM, OPERATION_PARSE, name) : 0;
}

static struct container_reference reference_of(const struct oci_hook *hook)
{
        return (struct container_reference){ .pid = hook->pid,
                                             .known_as = hook->id,
                                             .identity = hook->identity,
                                             .created = hook->event == HOOK_BEFORE };
}

/* Sets the entry's container: this one, and no other. */
static int settle_entry(const struct oci_hook *hook, struct request *entry, const char *name, struct error *error)
{
        if (entry->has_container)
                return fail_because(error, EINVAL, OPERATION_PARSE, name,
                                    "annotation %.200s: \"container\" is not allowed: a mount is for the container "
                                    "with the annotation",
                                    name);
        if (request_key_given(entry, "persist"))
                return fail_because(error, EINVAL, OPERATION_PARSE, name,
                                    "annotation %.200s: \"persist\" is not allowed: an annotation is asked each time",
                                    name);
        if (request_key_given(entry, "id"))
                return fail_because(error, EINVAL, OPERATION_PARSE, name,
                                    "annotation %.200s: \"id\" is not allowed: the ids of mounts are the node's", name);
        entry->container = reference_of(hook);
        entry->has_container = true;
        entry->held = true;
        return 0;
}

/* Where something is wanted, it is what root put there: an annotation of the container gives way. */
static void give_way(struct request *request, size_t wanted)
{
        size_t count = wanted;

        for (size_t i = wanted; i < request->entry_count; i++) {
                bool taken = false;

                for (size_t j = 0; j < wanted; j++)
                        taken = taken || strcmp(request->entries[i].target, request->entries[j].target) == 0;
                if (taken)
                        request_release(&request->entries[i]);
                else
                        request->entries[count++] = request->entries[i];
        }
        request->entry_count = count;
}

int oci_hook_request(struct oci_hook *hook, struct request *ret_request, size_t *ret_asked, struct error *error)
{
        const struct container_reference container = reference_of(hook);
        const json_t *annotations = json_object_get(hook->state, "annotations");
        const char *names[ANNOTATIONS_MAX];
        int count = list_annotations(annotations, names, error);
        size_t wanted;
        int r = count;

        request_init(ret_request, REQUEST_MOUNT_BATCH, &request_batch_keys);
        ret_request->sources = source_kinds;
        ret_request->timeout_seconds = HOOK_TIMEOUT_S;
        if (r >= 0 && hook->wanted.mounts != NULL)
                r = request_wanted_add(ret_request, &hook->wanted, &container, error);
        wanted = ret_request->entry_count;
        for (int i = 0; r >= 0 && i < count; i++) {
                size_t first = ret_request->entry_count;
                json_t *mounts;

                r = parse_annotation(hook, names[i], &mounts, error);
                if (r == 0)
                        r = request_batch_add(ret_request, names[i], mounts, error);
                for (size_t j = first; r == 0 && j < ret_request->entry_count; j++)
                        r = settle_entry(hook, &ret_request->entries[j], names[i], error);
        }
        if (r >= 0)
                give_way(ret_request, wanted);
        *ret_asked = ret_request->entry_count - wanted;
        if (r >= 0 && ret_request->entry_count > 0)
                r = request_batch_finish(ret_request, error);
        if (r >= 0 && hook->event == HOOK_BEFORE)
                r = find_root(hook, error);
        return r < 0 ? r : 0;
}

int oci_hook_mount(struct oci_hook *hook, struct request *ret_request, const struct outcome **ret_failed,
                   struct error *error)
{
        static struct outcome outcomes[REQUEST_ENTRIES_MAX];
        static struct plan plans[REQUEST_ENTRIES_MAX];
        cleanup_policy struct policy policy = {};
        const struct batch batch = { .request = ret_request, .policy = &policy, .created_root = hook->root };
        size_t asked;
        int r;

        if ((hook->asked && (r = policy_load(&policy, "annotations", error)) < 0) ||
            (r = oci_hook_request(hook, ret_request, &asked, error)) < 0 ||
            (asked > 0 && (r = policy_check_count(&policy, asked, error)) < 0) || ret_request->entry_count == 0)
                return r;
        plan_make_batch(plans, ret_request);
        return plan_apply_batch(plans, &batch, outcomes, ret_failed, error);
}

void oci_hook_release(struct oci_hook *hook)
{
        json_decref(hook->state);
        wish_release(&hook->wanted);
        hook->state = NULL;
}

void oci_hook_log(const struct oci_hook *hook, const struct error *error)
{
        static struct config config;
        static char subject[CONTAINER_NAME_MAX + 16]; /* the log borrows it */
        static struct error ignored;                  /* then it is the system's log */

        (void)config_load(&config, &ignored);
        (void)snprintf(subject, sizeof subject, "mount-hook %s", hook->id != NULL ? hook->id : "");
        log_begin(subject, config.log);
        log_failure("failed: %s: %s", error->subject, error_why(error));
}
