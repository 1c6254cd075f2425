/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request_parse.h - argv and JSON -> struct request. Unknown keys, repeated keys, wrong types, NUL bytes, nesting too
 * deep and input too long are refused, naming the key.
 */
#ifndef FLEXGRAFT_INJECT_REQUEST_REQUEST_PARSE_H
#define FLEXGRAFT_INJECT_REQUEST_REQUEST_PARSE_H

#include "base/error.h"
#include "inject/request/request.h"

/*
 * request_parse() - the one argument of a program: a JSON object, or "-" to read it from standard input.
 *
 * Takes:   sources, ended by NULL: of REQUEST_MOUNT its kind, of REQUEST_MOUNT_BATCH those of its entries; NULL for a
 *          request that mounts nothing.
 * Gives:   ret_request, released by request_release(), also after a failure.
 * Errors:  operation OPERATION_PARSE, the key as subject; the program then exits 2.
 */
int request_parse(struct request *ret_request, enum request_kind kind, const struct source_kind *const *sources,
                  int argc, char **argv, struct error *error);

#endif
