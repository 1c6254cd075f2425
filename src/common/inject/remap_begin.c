/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/remap_begin.h"

#include <jansson.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "inject/remap.h"
#include "inject/source.h"
#include "state/policy.h"

static bool may_need(const json_t *entry)
{
        const char *type = json_string_value(json_object_get(entry, "type"));

        for (const struct source_kind *const *kind = source_kinds; type != NULL && *kind != NULL; kind++)
                if ((*kind)->remap == REMAP_FALLBACK &&
                    (strcmp(type, (*kind)->word) == 0 ||
                     ((*kind)->oci_types != NULL && text_among(type, (*kind)->oci_types))))
                        return true;
        return remap_asked(entry);
}

int remap_begin_for_batch(int argc, char **argv, struct error *error)
{
        cleanup_json json_t *request = NULL;
        bool begins = remap_read_request(argc, argv, &request);
        const json_t *mounts = json_object_get(request, "mounts");
        const json_t *entry;
        size_t i;

        if (json_is_object(mounts)) /* one alone */
                begins = begins || may_need(mounts);
        json_array_foreach (mounts, i, entry)
                begins = begins || may_need(entry);
        return begins ? remap_begin(argc, argv, error) : 0;
}

int remap_begin_by_policy(int argc, char **argv, struct error *error)
{
        cleanup_policy struct policy policy = {};
        bool begins = false;
        struct error ignored; /* oci_hook_mount() loads the policy again and reports its errors */

        if (policy_load(&policy, "annotations", &ignored) < 0)
                return 0;
        for (const struct source_kind *const *kind = source_kinds; *kind != NULL; kind++)
                begins = begins || ((*kind)->remap == REMAP_FALLBACK && policy_lists(&policy, "kinds", (*kind)->word));
        return begins ? remap_begin(argc, argv, error) : 0;
}
