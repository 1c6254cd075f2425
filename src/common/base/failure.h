/* SPDX-License-Identifier: Apache-2.0 */
/*
 * failure.h - a struct error, in words -> the reply {"status":"Failure", ...}, with a hint: of its kind's row, or of the
 * folder that the operation is of.
 */
#ifndef FLEXGRAFT_BASE_FAILURE_H
#define FLEXGRAFT_BASE_FAILURE_H

#include <jansson.h>
#include <stddef.h>

#include "base/error.h"
#include "base/key.h"

/* What begins the message of every OPERATION_PARSE, in every program. */
#define FAILURE_NOT_UNDERSTOOD "the request cannot be understood: "

/*
 * What to do about failures of an operation, one sentence. Lists end with a row of zeroes; the first that matches
 * counts.
 */
struct hint {
        const char *operation; /* one of base/operation.h */
        int errnum;            /* 0: any */
        const char *text;
};

/* Those of system calls and of what several folders do. Each folder has those of what it does alone; inject/hints and state/hints put them together. */
extern const struct hint failure_hints[];

/*
 * failure_say() - print the reply. message: what could not be done, and why; hint: by failure_hint(), or NULL. Returns
 * the program's exit status.
 */
int failure_say(const char *message, const struct error *error, const char *hint);

/* What failure_say() replies: the last of every program's forms (struct schema_form). */
extern const struct key_table failure_keys;

/*
 * failure_object() - the reply to a request that was not carried out. Takes: error, or NULL for a reply without "error". A
 * new reference; NULL: no memory.
 */
json_t *failure_object(const char *message, const struct error *error, const char *hint);

/* failure_detail() - its "error": what was tried, on what, and errno, for programs. A new reference; NULL: no memory. */
json_t *failure_detail(const struct error *error, const char *hint);

/* What failure_detail() has: for a failure whose reply has other members besides. */
extern const struct key_table failure_detail_keys;

/*
 * failure_complain() - print a line on standard error in its place, where standard output is not for JSON: at once, and
 * with nothing that a terminal or a log would take for more than text. Changes the line, of so many bytes, which may be
 * cut. Returns the program's exit status.
 */
int failure_complain(char *line, size_t size, const struct error *error);

/* failure_hint() - of the kind's hints, then of these lists, which NULL ends; NULL where the message is enough. */
const char *failure_hint(const struct error *error, const struct hint *of_kind, const struct hint *const *lists);

/* failure_hint_among() - of one list alone. */
const char *failure_hint_among(const struct hint *list, const struct error *error);

/* failure_understood() - false: the request cannot be understood; error_why() alone says why. */
bool failure_understood(const struct error *error);

/* failure_exit_status() - EXIT_FAILED, or EXIT_NOT_UNDERSTOOD for a request that cannot be understood. */
int failure_exit_status(const struct error *error);

#endif
