/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/schema.h"

#include "base/failure.h"
#include "volume/option_keys.h"

#define BIT(verb) (1U << VERB_##verb)
#define ALL ~0U
#define SIZES (BIT(EXPANDVOLUME) | BIT(EXPANDFS))

static const char *const not_supported_words[] = { "Not supported", NULL };

static const struct key capability_keys[] = {
        { "attach", ALL, ALL, KEY_BOOLEAN, .help = "whether volumes are attached before they are mounted" },
        { "selinuxRelabel", ALL, ALL, KEY_BOOLEAN, .help = "whether kubelet may relabel the files" },
        { "supportsMetrics", ALL, ALL, KEY_BOOLEAN, .help = "whether kubelet may measure the volume" },
        { "fsGroup", ALL, ALL, KEY_BOOLEAN, .help = "whether kubelet may give the files a group" },
        { "requiresFSResize", ALL, ALL, KEY_BOOLEAN, .help = "whether expandfs follows expandvolume" },
};
static const struct key_table capabilities = KEY_TABLE(capability_keys);

static const struct key success_keys[] = {
        { "status", ALL, ALL, KEY_WORD, .words = schema_success, .help = "it is done" },
        { "message", ALL, 0, KEY_ANY, .help = "what else there is to say" },
        { "device", BIT(ATTACH) | BIT(WAITFORATTACH), BIT(ATTACH) | BIT(WAITFORATTACH), KEY_ANY,
          .help = "path of the device; empty for a volume without one" },
        { "volumeName", BIT(GETVOLUMENAME), BIT(GETVOLUMENAME), KEY_ANY, .help = "name of the volume" },
        { "attached", BIT(ISATTACHED), BIT(ISATTACHED), KEY_BOOLEAN, .help = "whether it has its device on the node" },
        { "volumeNewSize", SIZES, 0, KEY_COUNT, .help = "bytes" },
        { "capabilities", BIT(INIT), BIT(INIT), KEY_OBJECT, .members = &capabilities,
          .help = "what the driver can do" },
};
static const struct key_table success = KEY_TABLE(success_keys);

static const struct key not_supported_keys[] = {
        { "status", ALL, ALL, KEY_WORD, .words = not_supported_words, .help = "no volume of this driver has the verb" },
        { "message", ALL, ALL, KEY_ANY, .help = "the same in words" },
};
static const struct key_table not_supported = KEY_TABLE(not_supported_keys);

static const struct schema_form replies[] = {
        { "done", ALL, &success },
        { "failed", ALL, &failure_keys },
        { "not supported", ALL, &not_supported },
        {},
};

/* Verbs that look at the options beyond the name. getvolumename does not, and links no kind. */
#define WITH_OPTIONS (BIT(ATTACH) | BIT(WAITFORATTACH) | BIT(ISATTACHED) | BIT(MOUNTDEVICE) | BIT(MOUNT) | SIZES)

#define SCHEMA(name, word, letters, arguments)                                                                         \
        const struct schema volume_schema_##name = { .request_of =                                                     \
                                                             (WITH_OPTIONS & BIT(name)) != 0 ? option_keys : NULL,     \
                                                     .programs = 1,                                                    \
                                                     .texts = true,                                                    \
                                                     .reply_programs = BIT(name),                                      \
                                                     .replies = replies };

VOLUME_VERBS(SCHEMA)
