/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/verbs.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "volume/kind_words.h"

#define WORD(name, word, letters, arguments, traits) #word,
static const char *const words[VERBS] = { VOLUME_VERBS(WORD) };

#define TRAITS(name, word, letters, arguments, traits) (traits),
static const unsigned traits_of[VERBS] = { VOLUME_VERBS(TRAITS) };

static const struct ability {
        const char *name;
        bool has_device;
        bool owned;
        bool grows;
} abilities[] = {
#define COMMA ,
#define ABILITY(word, has_device, owned, grows)                                                                        \
        {                                                                                                              \
#word, has_device, owned, grows                                                                        \
        }
        VOLUME_TYPES(ABILITY, COMMA)
#undef ABILITY
#undef COMMA
};

#define CAPABILITIES(device, owned)                                                                                    \
        "{\"status\":\"Success\",\"capabilities\":{\"attach\":" device ",\"selinuxRelabel\":" owned                    \
        ",\"supportsMetrics\":true,\"fsGroup\":" owned ",\"requiresFSResize\":" device "}}\n"

const char *volume_verb_word(enum verb verb)
{
        return words[verb];
}

bool volume_verb_is(enum verb verb, unsigned trait)
{
        return verb < VERBS && (traits_of[verb] & trait) != 0;
}

enum verb volume_verb_find(const char *word)
{
        int verb = 0;

        while (verb < VERBS && strcmp(words[verb], word) != 0)
                verb++;
        return (enum verb)verb;
}

void volume_driver_name(const char *argv0, char *ret_driver)
{
        const char *end = strrchr(argv0, '/');
        const char *start;

        ret_driver[0] = '\0';
        if (end == NULL)
                return;
        if (end - argv0 >= 6 && strncmp(end - 6, "/verbs", 6) == 0)
                end -= 6;
        for (start = end; start > argv0 && start[-1] != '/'; start--)
                ;
        if (memchr(start, '~', (size_t)(end - start)) != NULL && end - start < VOLUME_DRIVER_MAX) {
                (void)memcpy(ret_driver, start, (size_t)(end - start));
                ret_driver[end - start] = '\0';
        }
}

static const struct ability *find_ability(const char *kind)
{
        for (size_t i = 0; i < sizeof abilities / sizeof abilities[0]; i++)
                if (strcmp(abilities[i].name, kind) == 0)
                        return &abilities[i];
        return NULL;
}

/* A driver of any other name may have volumes of any type. */
static const struct ability *ability_of(const char *driver)
{
        static const struct ability any = { "", true, true, true };
        const char *tilde = strchr(driver, '~');
        const struct ability *ability = tilde != NULL ? find_ability(tilde + 1) : NULL;

        return ability != NULL ? ability : &any;
}

bool volume_kind_has_device(const char *kind)
{
        const struct ability *ability = find_ability(kind);

        return ability == NULL || ability->has_device;
}

int volume_type_owns(const char *type)
{
        const struct ability *ability = find_ability(type);

        return ability == NULL ? -ENOENT : ability->owned;
}

bool volume_driver_can(const char *driver, enum verb verb)
{
        const struct ability *ability = ability_of(driver);

        return !volume_verb_is(verb, VERB_OF_DEVICE) || ability->has_device ||
               (volume_verb_is(verb, VERB_OF_GROWTH) && ability->grows);
}

const char *volume_driver_init(const char *driver)
{
        const struct ability *ability = ability_of(driver);

        if (ability->has_device)
                return ability->owned ? CAPABILITIES("true", "true") : CAPABILITIES("true", "false");
        return ability->owned ? CAPABILITIES("false", "true") : CAPABILITIES("false", "false");
}
