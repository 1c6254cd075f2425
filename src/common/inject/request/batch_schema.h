/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch_schema.h - the JSON Schemas of requests whose entries may be of any kind: for programs that link all kinds.
 */
#ifndef FLEXGRAFT_INJECT_REQUEST_BATCH_SCHEMA_H
#define FLEXGRAFT_INJECT_REQUEST_BATCH_SCHEMA_H

#include <jansson.h>

#include "base/key.h"

/* batch_schema() - the request of mount-batch. The caller owns the result. */
json_t *batch_schema(const struct key_table *table, unsigned programs);

/* batch_schema_of_annotation() - what an annotation for mount-hook holds: one entry, or an array of them. */
json_t *batch_schema_of_annotation(const struct key_table *table, unsigned programs);

#endif
