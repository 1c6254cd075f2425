/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_value.h - a value of a request, checked to have the right type; the error names its key.
 *
 * All values of requests pass here. Strings have no NUL bytes, are not empty and not too long.
 */
#ifndef FLEXGRAFT_BASE_JSON_VALUE_H
#define FLEXGRAFT_BASE_JSON_VALUE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define JSON_VALUE_STRING_MAX 4095
#define JSON_VALUE_ID_MAX 128

/* json_value_refuse() - "KEY: complaint", an error that means the request cannot be understood. Returns -EINVAL. */
int json_value_refuse(struct error *error, const char *key, const char *complaint);

/* json_value_string() - a string of 1 to maximum bytes without NUL; borrowed from the value. */
int json_value_string(const char *key, const json_t *value, size_t maximum, const char **ret_string,
                      struct error *error);

/* json_value_id() - a name that becomes part of a file name, of flexgraft or of a container runtime. */
int json_value_id(const char *key, const json_t *value, const char **ret_id, struct error *error);

/* json_value_path() - an absolute path of the node. */
int json_value_path(const char *key, const json_t *value, const char **ret_path, struct error *error);

/* json_value_number() - an id of a user or group. */
int json_value_number(const char *key, const json_t *value, uint32_t *ret_id, struct error *error);

/*
 * json_value_size() - a size in bytes: a number, or one with the suffix k, m, g or t (powers of 1024, as in tmpfs(5);
 * Ki, Mi, Gi and Ti mean the same), or, with percent, a share of the machine's memory ("50%"). ret_text is in the
 * kernel's syntax.
 */
int json_value_size(const char *key, const json_t *value, bool percent, char *ret_text, size_t size,
                    struct error *error);

#endif
