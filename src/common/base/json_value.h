/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_value.h - a value of a request, of the type it must have: checked, and named in the complaint if it is not.
 *
 * Everything that people may write in a request passes here: no NUL bytes, nothing empty, nothing too long.
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

/* json_value_string() - a string, whole, not empty, of at most maximum bytes; borrowed from the value. */
int json_value_string(const char *key, const json_t *value, size_t maximum, const char **ret_string,
                      struct error *error);

/* json_value_id() - a name that may become a file's, of ours or of a container runtime's. */
int json_value_id(const char *key, const json_t *value, const char **ret_id, struct error *error);

/* json_value_path() - an absolute path of the node. */
int json_value_path(const char *key, const json_t *value, const char **ret_path, struct error *error);

/* json_value_number() - an id of a user or group. */
int json_value_number(const char *key, const json_t *value, uint32_t *ret_id, struct error *error);

/*
 * json_value_size() - a size in bytes: a number, or one with k, m, g or t behind it (1024 and its powers, as tmpfs(5)
 * has it; Ki, Mi, Gi and Ti are the same), or with percent a share of the machine's memory. ret_text is what the kernel
 * takes.
 */
int json_value_size(const char *key, const json_t *value, bool percent, char *ret_text, size_t size,
                    struct error *error);

#endif
