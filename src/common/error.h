/* SPDX-License-Identifier: Apache-2.0 */
/*
 * error.h - a failure as a value: filled where it happens, carried up untouched, spoken once by status.c.
 *
 * Flat, without pointers, so that a worker can send it whole over its socket.
 */
#ifndef FLEXGRAFT_ERROR_H
#define FLEXGRAFT_ERROR_H

#include <limits.h>

struct error {
        int errnum;             /* errno value; 0: no error */
        char operation[32];     /* what was tried: a system call's name, or "parse request" and the like */
        char subject[PATH_MAX]; /* on what: a path, an option, a key, a container */
        char where[144];        /* "node", or the container whose namespaces were concerned */
        char kernel[512];       /* the filesystem context's messages, if any */
        char reason[512];       /* our own words, where the errno alone would mislead */
};

/* The operation of every failure that means "this request cannot be understood"; such programs exit 2. */
#define OPERATION_PARSE "parse request"

/*
 * fail() - fill the error and return -errnum, so that `return fail(...)` is the whole error path.
 *
 * An earlier error in the same struct is replaced. errnum must not be 0.
 */
int fail(struct error *error, int errnum, const char *operation, const char *subject);

/* fail_because() - the same, with a sentence of our own in place of the errno's text. */
int fail_because(struct error *error, int errnum, const char *operation, const char *subject, const char *reason, ...)
        __attribute__((format(printf, 5, 6)));

/* error_where() - say that the failure concerns a container rather than the node; returns -errnum. */
int error_where(struct error *error, const char *where);

#endif
