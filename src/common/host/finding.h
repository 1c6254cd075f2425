/* SPDX-License-Identifier: Apache-2.0 */
/*
 * finding.h - what was found out about one row of host-check: whether it is there, and how that shows.
 */
#ifndef FLEXGRAFT_HOST_FINDING_H
#define FLEXGRAFT_HOST_FINDING_H

#include <stdbool.h>

#include "base/error.h"
#include "process/privileges.h"

#define HOST_TEXT_MAX 400

enum host_state {
        HOST_UNKNOWN, /* it could not be tried here */
        HOST_OK,
        HOST_MISSING,
};

struct host_finding {
        enum host_state state;
        bool refused; /* unknown for want of privileges */
        char found[HOST_TEXT_MAX];
};

/* "ok", "missing", "unknown" */
extern const char *const host_state_words[];

/* host_found() - fill one in; host_found_refused() - it is unknown, and root could find out. */
void host_found_refused(struct host_finding *finding);
void host_found(struct host_finding *finding, enum host_state state, const char *text, ...)
        __attribute__((format(printf, 3, 4)));

/*
 * host_found_error() - a failure: it is missing, or unknown where the call failed for want of privileges that this
 * process does not have.
 */
void host_found_error(struct host_finding *finding, const struct error *error);

/* host_found_call() - the same of a system call that failed with this errno: ENOSYS means that there is none. */
void host_found_call(struct host_finding *finding, int errnum, const char *call);

/* host_privileges_look() - remember whether this process has all these capabilities; host_has_privileges() - the answer. */
void host_privileges_look(const struct privileges *privileges);
bool host_has_privileges(void);

/* host_status_field() - a line of /proc/self/status, such as "Seccomp:". Returns 0 or negative errno. */
int host_status_field(const char *name, char *ret_value, size_t size);

#endif
