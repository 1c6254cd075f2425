/* SPDX-License-Identifier: Apache-2.0 */
#include "named/batch_begin.h"

#include <jansson.h>
#include <limits.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "inject/oci_hook.h"
#include "inject/remap.h"
#include "inject/source.h"
#include "named/keeper.h"
#include "named/source_volume.h"
#include "state/config.h"
#include "state/policy.h"
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

static bool is_of(const struct source_kind *kind, const char *type)
{
        return strcmp(type, kind->word) == 0 || (kind->oci_types != NULL && text_among(type, kind->oci_types));
}

static void add_entry(struct needed *needed, const json_t *entry, bool replaces)
{
        const char *type = json_string_value(json_object_get(entry, "type"));
        const char *name = json_string_value(json_object_get(entry, "volume"))
                                   ?: json_string_value(json_object_get(entry, "source"));

        needed->remap = needed->remap || remap_asked(entry);
        for (const struct source_kind *const *kind = source_kinds; type != NULL && *kind != NULL; kind++)
                needed->remap = needed->remap || ((*kind)->remap == REMAP_FALLBACK && is_of(*kind, type));
        if (type != NULL && is_of(&source_volume, type) &&
            (replaces || json_is_true(json_object_get(entry, "replace"))))
                needed->runs |= named_stage_runs();
        if (type != NULL && is_of(&source_volume, type))
                needed->runs |= name != NULL ? volume_by_name_runs(name) : VOLUME_RUNS_ALL;
}

static int begin(const struct needed *needed, int argc, char **argv, struct error *error)
{
        int r = needed->remap ? remap_begin(argc, argv, error) : 0;

        return r < 0 ? r : volume_exec_helpers_begin_for(needed->runs, argc, argv, error);
}

int batch_begin_for_request(int argc, char **argv, struct error *error)
{
        cleanup_json json_t *request = NULL;
        struct needed needed = {};
        const json_t *mounts;
        const json_t *entry;
        bool replaces;
        size_t i;

        if (remap_read_request(argc, argv, &request))
                needed = (struct needed){ .remap = true, .runs = VOLUME_RUNS_ALL };
        mounts = json_object_get(request, "mounts");
        replaces = json_is_true(json_object_get(request, "replace"));
        if (json_is_object(mounts)) /* one alone */
                add_entry(&needed, mounts, replaces);
        json_array_foreach (mounts, i, entry) {
                add_entry(&needed, entry, replaces);
        }
        if (mounts == NULL && json_object_get(request, "wanted") != NULL) /* it is read with fewer privileges */
                needed = (struct needed){ .remap = true, .runs = VOLUME_RUNS_ALL };
        return begin(&needed, argc, argv, error);
}

int batch_begin_by_policy(int argc, char **argv, struct error *error)
{
        cleanup_policy struct policy policy = {};
        struct needed needed = {};
        char state_dir[PATH_MAX];
        enum oci_hook_stage stage;
        struct error ignored; /* oci_hook_mount() loads the policy again and reports its errors */

        if (argc < 2) /* it mounts nothing */
                return 0;
        if (oci_hook_stage(argv[1], &stage) && stage == HOOK_ENDED)
                return named_keeper_begin(argc, argv, error);
        if (config_state_dir(state_dir, &ignored) == 0 && wish_any(state_dir)) /* perhaps in this container */
                return begin(&(struct needed){ .remap = true, .runs = VOLUME_RUNS_ALL }, argc, argv, error);
        if (policy_load(&policy, "annotations", &ignored) < 0)
                return 0;
        for (const struct source_kind *const *kind = source_kinds; *kind != NULL; kind++)
                needed.remap = needed.remap ||
                               ((*kind)->remap == REMAP_FALLBACK && policy_lists(&policy, "kinds", (*kind)->word));
        if (policy_lists(&policy, "kinds", source_volume.word))
                needed.runs = VOLUME_RUNS_ALL;
        return begin(&needed, argc, argv, error);
}
