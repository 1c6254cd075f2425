/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request_keys.h - one key of a request and its value -> the field it means.
 */
#ifndef FLEXGRAFT_INJECT_REQUEST_KEYS_H
#define FLEXGRAFT_INJECT_REQUEST_KEYS_H

#include <jansson.h>

#include "base/error.h"
#include "inject/request.h"

/*
 * request_key_take() - any key that belongs to a request of this kind. Strings are borrowed from the value.
 * Errors: OPERATION_PARSE, naming the key: unknown, or a value of the wrong sort.
 */
int request_key_take(struct request *request, const char *key, const json_t *value, struct error *error);

/* For those who call them otherwise (OCI's "destination"), the key as it is to be named: */
int request_key_target(struct request *request, const char *key, const json_t *value, struct error *error);
int request_key_source(struct request *request, const char *key, const json_t *value, struct error *error);
int request_key_options(struct request *request, const char *key, const json_t *value, struct error *error);

#endif
