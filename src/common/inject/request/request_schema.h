/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request_schema.h - the JSON Schemas of the keys whose values have a type of their own.
 */
#ifndef FLEXGRAFT_INJECT_REQUEST_REQUEST_SCHEMA_H
#define FLEXGRAFT_INJECT_REQUEST_REQUEST_SCHEMA_H

#include <jansson.h>

#include "base/key.h"

/* request_schema_string() - a string that matches a pattern. The caller owns the result, as that of the others. */
json_t *request_schema_string(const char *pattern);

/* Of struct key. */
json_t *request_schema_container(const struct key_table *table, unsigned programs);
json_t *request_schema_options(const struct key_table *table, unsigned programs);

/* ---- the JSON Schemas of requests whose entries may be of any kind: for programs that link all kinds */

/* batch_schema() - the request of mount-batch. The caller owns the result. */
json_t *batch_schema(const struct key_table *table, unsigned programs);

/* batch_schema_of_annotation() - what an annotation for mount-hook holds: one entry, or an array of them. */
json_t *batch_schema_of_annotation(const struct key_table *table, unsigned programs);

#endif
