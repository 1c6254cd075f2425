/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema.h - what the driver's verbs take and reply, for --help and --schema.
 */
#ifndef FLEXGRAFT_VOLUME_SCHEMA_H
#define FLEXGRAFT_VOLUME_SCHEMA_H

#include "process/usage.h"
#include "volume/verbs.h"

/* One for each enum verb. */
extern const struct schema volume_schemas[];

/* VERB_USAGE(word, NAME, about) - what --help says of a verb. */
#define VERB_USAGE(word, NAME, about_verb)                                                                             \
        {                                                                                                              \
                .name = #word, .arguments = VERB_ARGUMENTS_##NAME,                                                     \
                .about = about_verb "\nA verb of the FlexVolume driver: kubelet runs it through flexdriver.",          \
                .schema = &volume_schemas[VERB_##NAME],                                                                \
                .exit_status = "Exit status: 0 done or failed, as \"status\" says; 1 not supported. Needs root."       \
        }

#endif
