/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/kinds.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#define COMMA ,
#define ROW(word, has_device, owned) &kind_##word
const struct volume_kind *const volume_kinds[] = { VOLUME_TYPES(ROW, COMMA), VOLUME_WRAPPERS(ROW, COMMA), NULL };
#undef ROW
#undef COMMA

const struct volume_option volume_common_options[] = {
        { .key = "type", .help = "the kind of the volume; without it the driver's name or the options tell" },
        { .key = "name", .help = "the volume's name, where kubelet gives none" },
        { .key = "fsType", .help = "filesystem that a blank device gets: ext4, xfs or btrfs" },
        { .key = "readOnly", .type = VOLUME_OPTION_BOOLEAN, .fallback = "false", .help = "mount it read-only" },
        { .key = "mountOptions", .fallback = "nosuid,nodev", .help = "as for mount(8), separated by commas" },
        {},
};

const struct volume_kind *volume_kind_find(const char *word)
{
        for (size_t i = 0; volume_kinds[i] != NULL; i++)
                if (strcmp(volume_kinds[i]->word, word) == 0)
                        return volume_kinds[i];
        return NULL;
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

static int read_flag(const struct volume_request *request, const char *flag, bool *ret_set, struct error *error)
{
        const char *text;
        int r = volume_request_option(request, flag, &text, error);

        if (r < 0)
                return r;
        *ret_set = text != NULL && strcmp(text, "true") == 0;
        if (text != NULL && !*ret_set && strcmp(text, "false") != 0)
                return fail_because(error, EINVAL, "check options", flag, "%s: must be true or false", flag);
        return 0;
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
                if ((r = read_flag(request, flagged->flag, &set, error)) < 0)
                        return r;
                for (size_t j = 0; set && j < 2; j++)
                        if (candidates[j] != NULL && candidates[j]->pool_types == NULL && candidates[j] != flagged)
                                return fail_because(error, EINVAL, "find kind", request->name,
                                                    "%s: volumes of type %s are in no pool; use a type that has pools",
                                                    flagged->flag, candidates[j]->word);
                if (set)
                        *kind = flagged;
        }
        return 0;
}

int volume_kind_requested(const struct volume_request *request, const struct volume_kind *of_driver,
                          const struct volume_kind **ret_kind, struct error *error)
{
        const char *word;
        int r = volume_request_option(request, "type", &word, error);

        if (r < 0)
                return r;
        *ret_kind = word != NULL ? find_type(word) : NULL;
        if (word != NULL && *ret_kind == NULL)
                return fail_because(error, EINVAL, "find kind", word, "\"%.64s\" is no type of volume; use one of %s",
                                    word, VOLUME_TYPE_LIST);
        if (*ret_kind != NULL && of_driver != NULL && *ret_kind != of_driver)
                return fail_because(error, EINVAL, "find kind", word, "a driver named %s has no volumes of type %s",
                                    of_driver->word, word);
        return apply_flags(request, of_driver, ret_kind, error);
}

const struct volume_kind *volume_kind_guess(const struct volume_request *request)
{
        for (size_t i = 0; volume_kinds[i] != NULL; i++)
                if (volume_kinds[i]->guess != NULL && volume_kinds[i]->guess(request))
                        return volume_kinds[i];
        return NULL;
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
                if ((r = read_flag(request, volume_kinds[i]->flag, &set, error)) < 0)
                        return r;
                if (set && !kind->has_device)
                        return fail_because(error, EINVAL, "mount", request->name,
                                            "%s: volumes of type %s have no device for a virtual machine",
                                            volume_kinds[i]->flag, kind->word);
                if (set)
                        *ret_wrapper = volume_kinds[i];
        }
        return 0;
}

static const struct volume_option *find_option(const struct volume_option *options, const char *key)
{
        for (; options != NULL && options->key != NULL; options++)
                if (strcmp(options->key, key) == 0)
                        return options;
        return NULL;
}

const struct volume_option *volume_option_find(const char *key)
{
        const struct volume_option *option = find_option(volume_common_options, key);

        for (size_t i = 0; option == NULL && volume_kinds[i] != NULL; i++)
                option = find_option(volume_kinds[i]->options, key);
        return option;
}
