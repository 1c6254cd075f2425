/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.h - a JSON value from a file of the node: a configuration, a record, a container runtime's state.
 */
#ifndef FLEXGRAFT_BASE_JSON_H
#define FLEXGRAFT_BASE_JSON_H

#include <jansson.h>

#include "base/error.h"
#include "base/file.h"

#define JSON_FILE_MAX_BYTES ((size_t)16 * 1024 * 1024)

/*
 * json_file_load() - parse the file; the caller owns *ret_value (json_decref). Repeated keys are refused.
 *
 * Errors: the errno of opening and reading it, ENOENT among them; EFBIG; EBADMSG when it is not one JSON value of that
 * type (JSON_OBJECT or JSON_ARRAY), with the line in the error's reason.
 */
int json_file_load(int dirfd, const char *path, json_type type, json_t **ret_value, struct error *error);

/* json_file_replace() - make name in dirfd hold a value, whole or not at all (file_replace()). Returns 0 or negative
 * errno; ENOMEM also for a value that is NULL. */
int json_file_replace(int dirfd, const char *name, const json_t *value, enum file_durability durability);

/* cleanup_json: an owned reference that is dropped at the end of its block. */
static inline void json_drop(json_t **json)
{
        json_decref(*json);
}
#define cleanup_json __attribute__((cleanup(json_drop)))

#endif
