/* SPDX-License-Identifier: Apache-2.0 */
/* controller_copy.c - what a class asks of a volume that is a copy: it has most of it from its source. */
#include "controller.h"

#include <string.h>

#include "base/json.h"
#include "base/text.h"

/* Copies of every pool have these; a volume without one has this. */
static const char *const common[][2] = { { "idMappable", "auto" }, { "cache", "auto" }, { "kataContainers", "false" } };

static const char *default_of(const char *key)
{
        for (size_t i = 0; i < sizeof common / sizeof common[0]; i++)
                if (strcmp(common[i][0], key) == 0)
                        return common[i][1];
        return NULL;
}

/* Whatever the volume says: who asks, what is given to volume-create itself, and what the copy's pool decides. */
static bool is_free(const char *key)
{
        return text_starts(key, CSI_OF_KUBERNETES) || strcmp(key, "eraseAfter") == 0 || strcmp(key, "preallocate") == 0;
}

static bool has_parameter(const json_t *volume, const char *key, const char *value, bool elsewhere)
{
        const char *has = json_member_text(json_object_get(volume, "parameters"), key);

        if (default_of(key) != NULL)
                return strcmp(has[0] != '\0' ? has : default_of(key), value) == 0;
        return !elsewhere && strcmp(has, value) == 0;
}

const char *controller_copy_lacks(const json_t *wanted, const json_t *volume)
{
        const char *pool = json_member_text(wanted, "pool");
        const char *profile = json_member_text(wanted, "profile");
        const char *fs_type = json_member_text(wanted, "fsType");
        const char *has_fs_type = json_member_text(volume, "fsType");
        bool elsewhere = pool[0] != '\0' && strcmp(pool, json_member_text(volume, "pool")) != 0;
        const char *key;
        const json_t *value;

        if (profile[0] != '\0' && (elsewhere || strcmp(profile, json_member_text(volume, "profile")) != 0))
                return "profile";
        if (fs_type[0] != '\0' && has_fs_type[0] != '\0' && strcmp(fs_type, has_fs_type) != 0)
                return "fsType";
        json_object_foreach (json_object_get(wanted, "parameters"), key, value)
                if (!is_free(key) && !has_parameter(volume, key, json_string_value(value), elsewhere))
                        return key;
        return NULL;
}
