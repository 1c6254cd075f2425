/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/schema.h"

#include "base/failure.h"
#include "volume/option_keys.h"
#include "volume/reply.h"

#define BIT(verb) (1U << VERB_##verb)
#define ALL ~0U
#define SIZES (BIT(EXPANDVOLUME) | BIT(EXPANDFS))

static const char *const not_supported_words[] = { "Not supported", NULL };

static const struct key not_supported_keys[] = {
        { "status", ALL, ALL, KEY_WORD, .words = not_supported_words, .help = "no volume of this driver has the verb" },
        { "message", ALL, ALL, KEY_ANY, .help = "the same in words" },
};
static const struct key_table not_supported = KEY_TABLE(not_supported_keys);

static const struct schema_form replies[] = {
        { "done", ALL, &volume_success_keys },
        { "failed", ALL, &failure_keys },
        { "not supported", ALL, &not_supported },
        {},
};

/* Verbs that look at the options beyond the name. getvolumename does not. */
#define WITH_OPTIONS (BIT(ATTACH) | BIT(WAITFORATTACH) | BIT(ISATTACHED) | BIT(MOUNTDEVICE) | BIT(MOUNT) | SIZES)

#define SCHEMA(name, word, letters, arguments)                                                                         \
        const struct schema volume_schema_##name = { .request_of =                                                     \
                                                             (WITH_OPTIONS & BIT(name)) != 0 ? option_keys : NULL,     \
                                                     .programs = 1,                                                    \
                                                     .texts = true,                                                    \
                                                     .reply_programs = BIT(name),                                      \
                                                     .replies = replies };

VOLUME_VERBS(SCHEMA)
