/* SPDX-License-Identifier: Apache-2.0 */
/*
 * error.h - a failure as a value: filled in where it happens, returned unchanged, printed once (base/failure).
 *
 * It has no pointers, so that a child process can send it over a socket.
 */
#ifndef FLEXGRAFT_BASE_ERROR_H
#define FLEXGRAFT_BASE_ERROR_H

#include <errno.h>
#include <limits.h>

#include "base/operation.h"

struct error {
        int errnum;             /* errno value; 0: no error */
        char operation[32];     /* what was tried: a system call's name, or "parse request" and the like */
        char where[144];        /* "node", or the container whose namespaces were concerned */
        char kernel[512];       /* the filesystem context's messages, if any */
        char reason[512];       /* a sentence, where the errno's text would mislead */
        char subject[PATH_MAX]; /* on what: a path, an option, a key, a container; last, as it is seldom long */
};

/*
 * error_set() - fill in all of it; an earlier error is replaced.
 *
 * Cold: what a function does only to fail lies apart from its other code, of which a call so touches fewer pages.
 */
void error_set(struct error *error, int errnum, const char *operation, const char *subject) __attribute__((cold));

/* error_because() - the same, with a sentence in place of the errno's text. */
void error_because(struct error *error, int errnum, const char *operation, const char *subject, const char *reason, ...)
        __attribute__((cold, format(printf, 5, 6)));

/*
 * error_text() - what an errno says. Never NULL: of 521 to 528, which NFS gives to programs and only the kernel has names
 * for (include/linux/errno.h), their number. Until the thread's next call.
 */
const char *error_text(int errnum);

/* error_why() - the cause in words: the reason, or the errno's text. */
const char *error_why(const struct error *error);

/* error_negative() - always below 0, visibly for the compiler and for static analysis. */
static inline int error_negative(int errnum)
{
        return errnum > 0 ? -errnum : -EIO;
}

/* fail() - fill the error and return negative errno, so that `return fail(...)` is the whole error path. */
static inline int fail(struct error *error, int errnum, const char *operation, const char *subject)
{
        error_set(error, errnum, operation, subject);
        return error_negative(errnum);
}

/* fail_because(error, errnum, operation, subject, reason, ...) - the same, with a reason. */
#define fail_because(error, errnum_value, ...)                                                                         \
        ({                                                                                                             \
                int fail_errnum = (errnum_value);                                                                      \
                error_because((error), fail_errnum, __VA_ARGS__);                                                      \
                error_negative(fail_errnum);                                                                           \
        })

/* error_where() - record that the failure concerns a container, not the node; returns negative errno. */
int error_set_where(struct error *error, const char *where);
static inline int error_where(struct error *error, const char *where)
{
        return error_negative(error_set_where(error, where));
}

#endif
