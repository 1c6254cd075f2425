/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema.h - what the driver's verbs take and reply, for --help and --schema.
 */
#ifndef FLEXGRAFT_VOLUME_SCHEMA_H
#define FLEXGRAFT_VOLUME_SCHEMA_H

#include "process/usage.h"
#include "volume/verbs.h"

#define VOLUME_SCHEMA(name, word, letters, arguments) extern const struct schema volume_schema_##name;
VOLUME_VERBS(VOLUME_SCHEMA)

/* VERB_USAGE(word, NAME, about) - what --help says of a verb. */
#define VERB_USAGE(word, NAME, about_verb)                                                                             \
        {                                                                                                              \
                .name = #word, .arguments = VERB_ARGUMENTS_##NAME,                                                     \
                .about = about_verb "\nA verb of the FlexVolume driver: kubelet runs it through flexdriver.",          \
                .schema = &volume_schema_##NAME,                                                                       \
                .exit_status = "Exit status: 0 done or failed, as \"status\" says; 1 not supported. Needs root."       \
        }

#endif
