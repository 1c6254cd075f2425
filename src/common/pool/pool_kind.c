/* SPDX-License-Identifier: Apache-2.0 */
#include "pool/pool_kind.h"

#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "state/state_dir.h"

#define ID_MAPPABLE "idMappable"
#define CACHE "cache"

#define COMMA ,
#define ROW(word, parameters) &pool_##word
const struct pool_kind *const pool_kinds[] = { POOL_TYPES(ROW, COMMA, COMMA), POOL_MODES(ROW, COMMA) NULL };
#undef ROW
#undef COMMA

static bool is_id_mappable(const json_t *value)
{
        static const char *const words[] = { POOL_ID_MAPPABLE_WORDS, NULL };
        const char *text = json_string_value(value);

        return text != NULL && text_among(text, words);
}

static bool is_cache(const json_t *value)
{
        static const char *const words[] = { "auto", POOL_CACHE_ALWAYS, NULL };
        const char *text = json_string_value(value);

        return text != NULL && text_among(text, words);
}

static bool is_word(const json_t *parameters, const char *name, const char *word)
{
        const char *value = json_string_value(json_object_get(parameters, name));

        return value != NULL && strcmp(value, word) == 0;
}

/* What volumes of every pool can have; their values are strings, too. */
static const struct file_key common_parameters[] = {
        { "eraseAfter", "\"true\" or \"false\"", file_key_is_flag, false, "true",
          "Whether the content is overwritten when the volume is deleted.", NULL },
        { POOL_FOR_MACHINES, "\"true\" or \"false\"", file_key_is_flag, false, "false",
          "Whether the volume is for containers in virtual machines.", NULL },
        { ID_MAPPABLE, "\"auto\", \"always\" or \"never\"", is_id_mappable, false, "auto",
          "Whether CSI's pods get it through remap-daemon where its filesystem cannot be id-mapped.", NULL },
        { CACHE, "\"auto\" or \"always\"", is_cache, false, "auto",
          "Whether remap-daemon asks for nothing twice, since one node alone changes the files.", NULL },
        {},
};

/* As Kubernetes' names are: so that they are names of directories. */
static bool is_name(const json_t *value)
{
        const char *text = json_string_value(value);

        return text != NULL && text[0] != '\0' && text[0] != '.' &&
               strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-.") == strlen(text);
}

/* What Kubernetes' provisioner says of a claim, whatever pool it is for. */
static const struct file_key kubernetes_parameters[] = {
        { POOL_PARAMETER_PV, "a name of Kubernetes", is_name, false, "the volume's name",
          "What ${pv.metadata.name} is.", NULL },
        { POOL_PARAMETER_PVC, "a name of Kubernetes", is_name, false, NULL, "What ${pvc.metadata.name} is.", NULL },
        { POOL_PARAMETER_NAMESPACE, "a name of Kubernetes", is_name, false, NULL, "What ${pvc.metadata.namespace} is.",
          NULL },
        {},
};

bool pool_parameter_flag(const json_t *parameters, const char *name, bool missing)
{
        const char *value = json_string_value(json_object_get(parameters, name));

        return value == NULL ? missing : strcmp(value, "true") == 0;
}

bool pool_kind_is_of_claim(const char *parameter)
{
        for (const struct file_key *key = kubernetes_parameters; key->name != NULL; key++)
                if (strcmp(key->name, parameter) == 0)
                        return true;
        return false;
}

json_t *pool_kind_common_parameters(const json_t *parameters)
{
        json_t *common = json_object();

        for (const struct file_key *key = common_parameters; key->name != NULL; key++) {
                json_t *value = json_object_get(parameters, key->name);

                if (value != NULL && json_object_set(common, key->name, value) < 0) {
                        json_decref(common);
                        return NULL;
                }
        }
        return common;
}

void pool_kinds_allow(void)
{
        for (size_t i = 0; pool_kinds[i] != NULL; i++)
                if (pool_kinds[i]->allow != NULL)
                        pool_kinds[i]->allow();
}

int pool_kind_check_machines(const struct pool_kind *kind, const json_t *parameters, struct error *error)
{
        if (!kind->no_device || !pool_parameter_flag(parameters, POOL_FOR_MACHINES, false))
                return 0;
        return fail_because(error, EINVAL, "check parameters", "parameters",
                            POOL_FOR_MACHINES ": volumes of type %s have no device for a virtual machine", kind->type);
}

int pool_kind_check_parameters(const struct pool_kind *kind, const json_t *parameters, struct error *error)
{
        cleanup_json json_t *own = parameters != NULL ? json_copy((json_t *)parameters) : NULL;
        char complaint[FILE_KEY_COMPLAINT_SIZE];
        int r;

        for (const struct file_key *key = common_parameters; key->name != NULL; key++)
                if (own != NULL)
                        (void)json_object_del(own, key->name); /* it may not be there */
        for (const struct file_key *key = kubernetes_parameters; key->name != NULL; key++)
                if (own != NULL)
                        (void)json_object_del(own, key->name); /* likewise */
        if (!file_keys_check(common_parameters, parameters, /* strict= */ false, complaint) ||
            !file_keys_check(kubernetes_parameters, parameters, /* strict= */ false, complaint) ||
            !file_keys_check(kind->parameters, own, /* strict= */ true, complaint))
                return fail_because(error, EINVAL, "check parameters", "parameters", "in a pool of type %s: %s",
                                    kind->type, complaint);
        if (is_word(parameters, CACHE, POOL_CACHE_ALWAYS) && !is_word(parameters, ID_MAPPABLE, POOL_ID_MAPPABLE_ALWAYS))
                return fail_because(error, EINVAL, "check parameters", "parameters",
                                    "\"" CACHE "\": \"" POOL_CACHE_ALWAYS "\" needs \"" ID_MAPPABLE
                                    "\": \"" POOL_ID_MAPPABLE_ALWAYS "\"");
        r = pool_kind_check_machines(kind, parameters, error);
        return r < 0 || kind->check_parameters == NULL ? r : kind->check_parameters(parameters, error);
}

need_set pool_kind_parameter_needs(const struct pool_kind *kind, const json_t *parameters)
{
        need_set needs = kind->parameter_needs != NULL ? kind->parameter_needs(parameters) : 0;

        if (is_word(parameters, ID_MAPPABLE, POOL_ID_MAPPABLE_ALWAYS))
                needs |= kind->mappable_needs;
        if (pool_parameter_flag(parameters, POOL_FOR_MACHINES,
                                false)) /* what the machine sees is in an image in the volume */
                needs |= NEED(LOOP) | NEED(LOOP_CONFIGURE);
        return needs;
}

bool pool_kind_is_torn(const struct provision_record *record)
{
        if (record->restoring[0] == '\0')
                return false;
        for (size_t i = 0; pool_kinds[i] != NULL; i++)
                if (strcmp(pool_kinds[i]->type, record->pool_type) == 0 && pool_kinds[i]->restore != NULL)
                        return pool_kinds[i]->unrestore == NULL;
        return false;
}

bool pool_kind_is_one_everywhere(const struct pool_kind *kind, const struct provision_record *record)
{
        return kind->is_one_everywhere != NULL && kind->is_one_everywhere(record);
}

bool pool_kind_has_images(const char *type)
{
        for (size_t i = 0; pool_kinds[i] != NULL; i++)
                if (strcmp(pool_kinds[i]->type, type) == 0)
                        return pool_kinds[i]->has_images;
        return false;
}

const char *pool_file(const struct pool *pool, const char *path)
{
        size_t length = strlen(pool->path);

        return strncmp(path, pool->path, length) == 0 && path[length] == '/' && strchr(path + length + 1, '/') == NULL
                       ? path + length + 1
                       : NULL;
}

const char *pool_kind_hint(const struct error *error)
{
        for (size_t i = 0; pool_kinds[i] != NULL; i++) {
                const char *hint = failure_hint_among(pool_kinds[i]->hints, error);

                if (hint != NULL)
                        return hint;
        }
        return failure_hint(error, /* of_kind= */ NULL, state_all_hints);
}
