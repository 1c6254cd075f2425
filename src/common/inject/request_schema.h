/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request_schema.h - the JSON Schemas of the keys whose values have a type of their own.
 */
#ifndef FLEXGRAFT_INJECT_REQUEST_SCHEMA_H
#define FLEXGRAFT_INJECT_REQUEST_SCHEMA_H

#include <jansson.h>

#include "base/key.h"

/* Each is for a row of request_keys; the caller owns the result. */
json_t *request_schema_container(const struct key_table *table, unsigned programs);
json_t *request_schema_from(const struct key_table *table, unsigned programs);
json_t *request_schema_to(const struct key_table *table, unsigned programs);
json_t *request_schema_options(const struct key_table *table, unsigned programs);
json_t *request_schema_mode(const struct key_table *table, unsigned programs);
json_t *request_schema_lower(const struct key_table *table, unsigned programs);
json_t *request_schema_partition(const struct key_table *table, unsigned programs);

#endif
