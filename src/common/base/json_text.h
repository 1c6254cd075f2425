/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_text.h - the text of a request -> JSON, strictly: what is repeated, nested too deep or too long is refused,
 * naming the key it happened at, in words that are safe to print whatever the text was.
 */
#ifndef FLEXGRAFT_BASE_JSON_TEXT_H
#define FLEXGRAFT_BASE_JSON_TEXT_H

#include <jansson.h>
#include <stddef.h>

#include "base/error.h"

/* json_text_parse() - the caller owns *ret_value (json_decref). Errors: OPERATION_PARSE. */
int json_text_parse(const char *text, size_t length, json_t **ret_value, struct error *error);

/* json_text_parse_stdin() - the same of standard input, at most maximum bytes of it. */
int json_text_parse_stdin(size_t maximum, json_t **ret_value, struct error *error);

#endif
