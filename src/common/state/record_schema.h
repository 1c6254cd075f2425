/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_schema.h - the table of a record (state/record.h) -> a JSON Schema.
 */
#ifndef FLEXGRAFT_STATE_RECORD_SCHEMA_H
#define FLEXGRAFT_STATE_RECORD_SCHEMA_H

#include <jansson.h>

#include "state/record.h"

/* record_schema() - a document of draft 2020-12. The caller owns it. */
json_t *record_schema(const char *title, const struct record_table *table);

#endif
