/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema.h - what the volume tools take and reply, for --help and --schema.
 */
#ifndef FLEXGRAFT_PROVISION_SCHEMA_H
#define FLEXGRAFT_PROVISION_SCHEMA_H

#include "base/schema.h"

/* How a volume is (volume/health), ended by NULL. */
extern const char *const provision_health_words[];

/* One for each enum provision_verb. */
extern const struct schema provision_schemas[];

#endif
