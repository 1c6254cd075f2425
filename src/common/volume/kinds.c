/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/kinds.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/failure.h"
#include "base/text.h"
#include "pool/pool_kind.h"
#include "pool/record.h"

#define KUBELET_PREFIX "kubernetes.io/" /* it adds such options itself, and newer ones may add more */
#define OPTION_LIST_SIZE 384

#define COMMA ,
#define ROW(word, has_device, owned, grows) &kind_##word
const struct volume_kind *const volume_kinds[] = { VOLUME_TYPES(ROW, COMMA), VOLUME_WRAPPERS(ROW, COMMA) NULL };
#undef ROW
#undef COMMA

const struct volume_kind *volume_kind_find(const char *word)
{
        for (size_t i = 0; volume_kinds[i] != NULL; i++)
                if (strcmp(volume_kinds[i]->word, word) == 0)
                        return volume_kinds[i];
        return NULL;
}

const struct volume_kind *volume_kind_tagged(void)
{
        size_t i = 0;

        while (!volume_kinds[i]->tagged)
                i++;
        return volume_kinds[i];
}

static bool wraps(const struct volume_kind *kind)
{
        return kind->stage != NULL;
}

/* The kinds that "type" and a driver's name can say. */
static const struct volume_kind *find_type(const char *word)
{
        const struct volume_kind *kind = volume_kind_find(word);

        return kind == NULL || wraps(kind) ? NULL : kind;
}

const struct volume_kind *volume_kind_of_driver(const char *driver)
{
        const char *tilde = strchr(driver, '~');

        return tilde != NULL ? find_type(tilde + 1) : NULL;
}

/* A flag, as "ephemeral", makes a volume of a pool one of another kind. */
static int apply_flags(const struct volume_request *request, const struct volume_kind *of_driver,
                       const struct volume_kind **kind, struct error *error)
{
        const struct volume_kind *candidates[] = { of_driver, *kind };
        bool set;
        int r;

        for (size_t i = 0; volume_kinds[i] != NULL; i++) {
                const struct volume_kind *flagged = volume_kinds[i];

                if (flagged->flag == NULL || wraps(flagged))
                        continue;
                if ((r = volume_request_flag(request, flagged->flag, &set, error)) < 0)
                        return r;
                for (size_t j = 0; set && j < 2; j++)
                        if (candidates[j] != NULL && candidates[j]->open != NULL)
                                return fail_because(error, EINVAL, "find kind", request->name,
                                                    "%s: a volume of type %s must be made with volume-create",
                                                    flagged->flag, candidates[j]->word);
                        else if (candidates[j] != NULL && candidates[j]->pool_types == NULL && candidates[j] != flagged)
                                return fail_because(error, EINVAL, "find kind", request->name,
                                                    "%s: volumes of type %s are in no pool; use a type that has pools",
                                                    flagged->flag, candidates[j]->word);
                if (set)
                        *kind = flagged;
        }
        return 0;
}

static int read_requested(const struct volume_request *request, const struct volume_kind *of_driver,
                          const struct volume_kind **ret_kind, struct error *error)
{
        const char *word;
        int r = volume_request_option(request, "type", &word, error);

        if (r < 0)
                return r;
        *ret_kind = word != NULL ? find_type(word) : NULL;
        if (word != NULL && *ret_kind == NULL)
                return fail_because(error, EINVAL, "find kind", word,
                                    "\"%.64s\" is not a type of volume; use one of %s", word, VOLUME_TYPE_LIST);
        if (*ret_kind != NULL && of_driver != NULL && *ret_kind != of_driver)
                return fail_because(error, EINVAL, "find kind", word, "a driver named %s has no volumes of type %s",
                                    of_driver->word, word);
        return apply_flags(request, of_driver, ret_kind, error);
}

static const struct volume_kind *guess(const struct volume_request *request)
{
        for (size_t i = 0; volume_kinds[i] != NULL; i++)
                if (volume_kinds[i]->guess != NULL && volume_kinds[i]->guess(request))
                        return volume_kinds[i];
        return NULL;
}

/* What volume-create made under this name. */
static const struct volume_kind *kind_of_provisioned(const char *state_dir, const char *name)
{
        cleanup_provision_record struct provision_record made = {};
        const struct volume_kind *kind;
        struct error ignored; /* provisioned_apply() meets it again */

        if (provision_record_find(state_dir, name, &made, &ignored) < 0)
                return NULL;
        kind = volume_kind_find(made.pool_type);
        return kind != NULL && kind->pool_types != NULL ? kind : NULL;
}

const struct volume_kind *volume_kind_choose(const struct volume_signs *signs)
{
        const struct volume_kind *kind = signs->requested;

        if (kind == NULL && signs->of_record != NULL)
                kind = volume_kind_find(signs->of_record);
        if (kind == NULL)
                kind = signs->of_driver;
        if (kind == NULL && signs->state_dir != NULL)
                kind = kind_of_provisioned(signs->state_dir, signs->name);
        return kind != NULL ? kind : signs->guessed;
}

int volume_kind_read(const struct volume_request *request, const struct volume_kind *of_driver,
                     struct volume_signs *ret_signs, struct error *error)
{
        const struct volume_kind *requested = NULL;
        int r = read_requested(request, of_driver, &requested, error);

        *ret_signs = (struct volume_signs){ .requested = r == 0 ? requested : NULL,
                                            .of_driver = of_driver,
                                            .name = request->name,
                                            .guessed = guess(request) };
        return r;
}

int volume_kind_wrapper(const struct volume_request *request, const struct volume_kind *kind,
                        const struct volume_kind **ret_wrapper, struct error *error)
{
        bool set;
        int r;

        *ret_wrapper = NULL;
        for (size_t i = 0; volume_kinds[i] != NULL; i++) {
                if (!wraps(volume_kinds[i]))
                        continue;
                if ((r = volume_request_flag(request, volume_kinds[i]->flag, &set, error)) < 0)
                        return r;
                if (set && !kind->has_device && !kind->makes_device)
                        return fail_because(error, EINVAL, "mount", request->name,
                                            "%s: volumes of type %s have no device for a virtual machine",
                                            volume_kinds[i]->flag, kind->word);
                if (set && kind->has_device)
                        *ret_wrapper = volume_kinds[i];
        }
        return 0;
}

int volume_kind_flag(const struct volume_request *request, const char *key, bool *ret_set, struct error *error)
{
        *ret_set = false;
        return key != NULL ? volume_request_flag(request, key, ret_set, error) : 0;
}

static const struct volume_option *find_option(const struct volume_kind *kind, const char *key)
{
        for (const struct volume_option *option = kind->options; option != NULL && option->key != NULL; option++)
                if (strcmp(option->key, key) == 0)
                        return option;
        return NULL;
}

const struct volume_option *volume_option_find(const char *key)
{
        const struct volume_option *option = NULL;

        for (size_t i = 0; option == NULL && volume_kinds[i] != NULL; i++)
                option = find_option(volume_kinds[i], key);
        return option;
}

/* A flag may be given to every kind: "false" is what holds without it. */
static bool is_flag(const char *key)
{
        for (size_t i = 0; volume_kinds[i] != NULL; i++)
                if (volume_kinds[i]->flag != NULL && strcmp(volume_kinds[i]->flag, key) == 0)
                        return true;
        return false;
}

/* "image, size, ...": the options of a kind, and those that all kinds have. */
static void list_options(const struct volume_kind *kind, char *ret_text, size_t size)
{
        size_t length = 0;

        ret_text[0] = '\0';
        for (const struct volume_option *option = kind->options; option != NULL && option->key != NULL; option++)
                if (length < size && !is_flag(option->key))
                        length += (size_t)snprintf(ret_text + length, size - length, "%s, ", option->key);
        for (size_t i = 0; i < volume_request_keys.count; i++)
                if (length < size && !text_starts(volume_request_keys.rows[i].name, KUBELET_PREFIX))
                        length += (size_t)snprintf(ret_text + length, size - length, "%s, ",
                                                   volume_request_keys.rows[i].name);
        for (size_t i = 0; volume_kinds[i] != NULL; i++)
                if (length < size && volume_kinds[i]->flag != NULL)
                        length += (size_t)snprintf(ret_text + length, size - length, "%s, ", volume_kinds[i]->flag);
        if (length >= 2 && length < size)
                ret_text[length - 2] = '\0';
}

static int check_value(const struct volume_request *request, const char *key, enum volume_option_type type,
                       struct error *error)
{
        const char *text;
        uint64_t size;
        bool set;

        switch (type) {
        case VOLUME_OPTION_BOOLEAN:
                return volume_request_flag(request, key, &set, error);
        case VOLUME_OPTION_SIZE:
                return volume_request_size(request, key, &size, error);
        default:
                return volume_request_option(request, key, &text, error);
        }
}

int volume_kind_check_options(const struct volume_request *request, const struct volume_kind *kind, struct error *error)
{
        char known[OPTION_LIST_SIZE];
        const char *key;
        const json_t *value;
        int r;

        json_object_foreach (request->options, key, value) {
                const struct volume_option *option = find_option(kind, key);
                bool known_here = option != NULL || is_flag(key);

                if (known_here &&
                    (r = check_value(request, key, option != NULL ? option->type : VOLUME_OPTION_BOOLEAN, error)) < 0)
                        return r;
                if (text_starts(key, KUBELET_PREFIX) || known_here || key_find(&volume_request_keys, ~0U, key) != NULL)
                        continue;
                list_options(kind, known, sizeof known);
                return fail_because(error, EINVAL, "check options", key,
                                    "volumes of type %s have no option \"%.64s\"; they have %s", kind->word, key,
                                    known);
        }
        return 0;
}

const char *volume_kind_hint(const struct volume_request *request, const struct error *error)
{
        const struct volume_kind *kind;
        struct volume_signs signs;
        struct error ignored; /* then the request does not say it */

        (void)volume_kind_read(request, volume_kind_of_driver(request->driver), &signs, &ignored);
        kind = volume_kind_choose(&signs);
        for (size_t i = 0; volume_kinds[i] != NULL; i++) {
                const char *hint = kind == NULL || kind == volume_kinds[i]
                                           ? failure_hint_among(volume_kinds[i]->hints, error)
                                           : NULL;

                if (hint != NULL)
                        return hint;
        }
        return pool_kind_hint(error);
}
