/* SPDX-License-Identifier: Apache-2.0 */
#include "named/batch_begin.h"

#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "daemon/remap.h"
#include "inject/oci_hook.h"
#include "inject/request/request.h"
#include "inject/request/source.h"
#include "pool/pool_kind.h"
#include "process/sealed_child.h"
#include "state/config.h"
#include "state/policy.h"
#include "state/volume_record.h"
#include "state/wish.h"
#include "volume/by_name.h"
#include "volume/exec_helpers.h"
#include "volume/kind.h"
#include "volume/named_stage.h"

/* What may be needed. */
struct needed {
        bool remap;
        unsigned runs; /* VOLUME_RUNS_* */
};

struct question {
        const char *request;
        bool batch; /* else one volume */
        struct batch_asked *asked;
};

/* ---- in the process without privileges. What is refused here the program refuses, too, with the reason. */

static void note_volume(struct batch_asked *asked, const json_t *value, bool replaces)
{
        const char *name = json_string_value(value);

        asked->replaces = asked->replaces || replaces;
        if (name != NULL && asked->count < REQUEST_ENTRIES_MAX &&
            text_copy(asked->names[asked->count], sizeof asked->names[0], name))
                asked->count++;
        else
                asked->all = true;
}

static bool is_of(const struct source_kind *kind, const char *type)
{
        return strcmp(type, kind->word) == 0 || (kind->oci_types != NULL && text_among(type, kind->oci_types));
}

static void note_entry(struct batch_asked *asked, const json_t *entry, bool replaces)
{
        const char *type = json_string_value(json_object_get(entry, "type"));
        static const char *const keys[] = { "ids", "fallback" };
        const json_t *name = json_object_get(entry, "volume") ?: json_object_get(entry, "source");

        for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
                const char *word = json_string_value(json_object_get(entry, keys[i]));

                asked->remap = asked->remap || (word != NULL && strcmp(word, "remap") == 0);
        }
        for (const struct source_kind *const *kind = source_kinds; type != NULL && *kind != NULL; kind++)
                asked->remap = asked->remap || ((*kind)->remap == REMAP_FALLBACK && is_of(*kind, type));
        if (type != NULL && is_of(&source_volume, type))
                note_volume(asked, name, replaces || json_is_true(json_object_get(entry, "replace")));
}

static void note_batch(struct batch_asked *asked, const json_t *request)
{
        const json_t *mounts = json_object_get(request, "mounts");
        const bool replaces = json_is_true(json_object_get(request, "replace"));
        const json_t *entry;
        size_t i;

        if (json_is_object(mounts)) /* one alone */
                note_entry(asked, mounts, replaces);
        json_array_foreach (mounts, i, entry) {
                note_entry(asked, entry, replaces);
        }
        if (mounts == NULL && json_object_get(request, "wanted") != NULL) /* it is read with fewer privileges */
                asked->remap = asked->all = true;
}

void batch_asked_read(const char *text, bool batch, struct batch_asked *asked)
{
        cleanup_json json_t *request = NULL;
        struct error ignored;

        if (json_text_parse(text, strlen(text), &request, &ignored) < 0)
                return;
        if (batch)
                note_batch(asked, request);
        else
                note_volume(asked, json_object_get(request, "volume"),
                            json_is_true(json_object_get(request, "replace")));
}

static unsigned read_request(void *argument)
{
        const struct question *question = argument;

        batch_asked_read(question->request, question->batch, question->asked);
        return 0;
}

/* ---- in the program */

static struct needed needed_for(const struct batch_asked *asked)
{
        struct needed needed = { .remap = asked->remap, .runs = asked->replaces ? named_stage_runs() : 0 };
        char name[VOLUME_NAME_MAX];
        bool any_filesystem;

        if (asked->all || asked->count > REQUEST_ENTRIES_MAX)
                needed = (struct needed){ .remap = true, .runs = VOLUME_RUNS_ALL };
        for (unsigned i = 0; (needed.runs != VOLUME_RUNS_ALL || !needed.remap) && i < asked->count; i++) {
                (void)snprintf(name, sizeof name, "%.*s", (int)sizeof name - 1, asked->names[i]);
                needed.runs |= volume_by_name_runs(name, &any_filesystem);
                needed.remap = needed.remap || any_filesystem;
        }
        return needed;
}

static bool may_fall_back(const char *request, const struct source_kind *kind)
{
        bool may = json_text_may_have(request, kind->word);

        for (const char *const *type = kind->oci_types; !may && type != NULL && *type != NULL; type++)
                may = json_text_may_have(request, *type);
        return may && kind->remap == REMAP_FALLBACK;
}

bool batch_is_clear(const char *request, bool *ret_remap)
{
        if (request[0] == '\0' || json_text_may_have(request, source_volume.word) ||
            json_text_may_have(request, "wanted"))
                return false;
        *ret_remap = json_text_may_have(request, "remap");
        for (const struct source_kind *const *kind = source_kinds; *kind != NULL; kind++)
                *ret_remap = *ret_remap || may_fall_back(request, *kind);
        return true;
}

/* Behind a key's string. NULL: no string follows. */
static const char *string_behind(const char *text)
{
        static const char blank[] = " \t\r\n";

        text += strspn(text, blank);
        if (*text != ':')
                return NULL;
        text += 1 + strspn(text + 1, blank);
        return *text == '"' ? text + 1 : NULL;
}

/* It is there once, and plain. */
bool batch_volume_is_clear(const char *request, char *ret_name)
{
        static const char key[] = "\"volume\"";
        const char *found = strstr(request, key);
        const char *name = found != NULL ? string_behind(found + strlen(key)) : NULL;
        const size_t length = name != NULL ? strcspn(name, "\"") : 0;

        if (name == NULL || length >= VOLUME_NAME_MAX || strchr(request, '\\') != NULL ||
            strstr(found + 1, key) != NULL || strstr(request, "\"replace\"") != NULL)
                return false;
        (void)snprintf(ret_name, VOLUME_NAME_MAX, "%.*s", (int)length, name);
        return true;
}

static bool is_clear(const char *request, bool batch, struct needed *ret_needed)
{
        char name[VOLUME_NAME_MAX];
        struct needed needed = {};

        if (!(batch ? batch_is_clear(request, &needed.remap) : batch_volume_is_clear(request, name)))
                return false;
        if (!batch)
                needed.runs = volume_by_name_runs(name, &needed.remap);
        *ret_needed = needed;
        return true;
}

/* All of them if the request is on standard input, which cannot be read again, or cannot be asked about. */
static struct needed ask(int argc, char **argv, bool batch)
{
        struct needed needed = { .remap = true, .runs = VOLUME_RUNS_ALL };
        struct question question = { .batch = batch };

        if (argc != 2 || strcmp(argv[1], "-") == 0)
                return needed;
        if (is_clear(argv[1], batch, &needed))
                return needed;
        question.request = argv[1];
        question.asked = unprivileged_memory(sizeof *question.asked);
        return question.asked != NULL && unprivileged_ask(read_request, &question) == 0 ? needed_for(question.asked)
                                                                                        : needed;
}

static int begin(const struct needed *needed, int argc, char **argv, struct error *error)
{
        int r = needed->remap ? remap_begin(argc, argv, error) : 0;

        pool_kinds_allow(); /* a volume by name may be on a share, or be made there */
        return r < 0 ? r : volume_exec_helpers_begin_for(needed->runs, argc, argv, error);
}

int batch_begin_for_request(int argc, char **argv, struct error *error)
{
        const struct needed needed = ask(argc, argv, /* batch= */ true);

        return begin(&needed, argc, argv, error);
}

int batch_begin_for_volume(int argc, char **argv, struct error *error)
{
        const struct needed needed = ask(argc, argv, /* batch= */ false);

        return begin(&needed, argc, argv, error);
}

int batch_begin_by_policy(int argc, char **argv, struct error *error)
{
        cleanup_policy struct policy policy = {};
        struct needed needed = {};
        char state_dir[PATH_MAX];
        enum oci_hook_event event;
        struct error ignored; /* oci_hook_mount() loads the policy again and reports its errors */

        if (argc < 2) /* it mounts nothing */
                return 0;
        if (oci_hook_event(argv[1], &event) && event == HOOK_ENDED)
                return named_releaser_begin(argc, argv, error);
        if (config_state_dir(state_dir, &ignored) == 0 && wish_any(state_dir)) /* perhaps in this container */
                return begin(&(struct needed){ .remap = true, .runs = VOLUME_RUNS_ALL }, argc, argv, error);
        if (policy_load(&policy, "annotations", &ignored) < 0)
                return 0;
        needed.remap = policy_falls_back(&policy);
        for (const struct source_kind *const *kind = source_kinds; *kind != NULL; kind++)
                needed.remap = needed.remap ||
                               ((*kind)->remap == REMAP_FALLBACK && policy_lists(&policy, "kinds", (*kind)->word));
        if (policy_lists(&policy, "kinds", source_volume.word))
                needed = (struct needed){ .remap = true, .runs = VOLUME_RUNS_ALL };
        return begin(&needed, argc, argv, error);
}
