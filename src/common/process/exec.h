/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec.h - one of other people's programs, run from a runner: from a fixed place, with an environment of our own and
 * nothing open but /dev/null and where it says what it has to say.
 */
#ifndef FLEXGRAFT_PROCESS_EXEC_H
#define FLEXGRAFT_PROCESS_EXEC_H

#include <stdbool.h>

#include "base/error.h"

#define COMMAND_OUTPUT_SIZE 400

struct exec {
        const char *name;             /* looked for in the system's directories */
        const char *path;             /* or where it is; NULL */
        const char *const *arguments; /* all of them, its name first; NULL ends them */
        unsigned timeout_seconds;
        bool privileged; /* keeps the runner's capabilities */
        int report_fd;   /* its standard output; < 0: the same as its standard error */
};

struct exec_end {
        int errnum; /* 0: it ran, and ended with */
        int status;
        char output[COMMAND_OUTPUT_SIZE]; /* the end of what it said */
};

/* exec_run() - run it, and wait for it: in a runner, which takes no privilege from it that it has not itself. */
void exec_run(const struct exec *command, struct exec_end *ret_end);

/*
 * exec_check() - how it ended, as an error: ENOENT it is not installed; ETIMEDOUT it was killed after so many
 * seconds; ECANCELED it died of a signal. Returns its exit status.
 */
int exec_check(const char *name, const struct exec_end *end, unsigned timeout_seconds, struct error *error);

#endif
