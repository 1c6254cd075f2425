/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request_keys.h - the keys of the mount helpers' requests: one key and its value -> the field it means.
 */
#ifndef FLEXGRAFT_INJECT_REQUEST_KEYS_H
#define FLEXGRAFT_INJECT_REQUEST_KEYS_H

#include <jansson.h>

#include "base/error.h"
#include "base/key.h"
#include "inject/request.h"

/* Its programs are the bits of enum request_kind. */
extern const struct key_table request_keys;

/*
 * request_key_take() - any key that belongs to a request of this kind. Strings are borrowed from the value.
 * Errors: OPERATION_PARSE, naming the key: unknown, or a value of the wrong sort.
 */
int request_key_take(struct request *request, const char *key, const json_t *value, struct error *error);

/* request_key_is_for() - whether requests of its kind have this key. */
bool request_key_is_for(const struct request *request, const char *key);

/* request_key_take_as() - the same, of a key that has another name where it was written (OCI's "destination"). */
int request_key_take_as(struct request *request, const char *key, const char *name, const json_t *value,
                        struct error *error);

/* request_key_given() - whether a key was there, whatever its value. */
bool request_key_given(const struct request *request, const char *key);

/* request_keys_check() - whether every key that a request of this kind needs was given. Errors: OPERATION_PARSE. */
int request_keys_check(const struct request *request, struct error *error);

#endif
