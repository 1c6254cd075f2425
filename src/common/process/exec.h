/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec.h - run an external program (mkfs, lvm, ...) once, in a child, and wait for it.
 *
 * Called in an exec helper (process/exec_helper), because the programs themselves may not call execve. The external
 * program is found in fixed directories, gets a fixed environment, and has nothing open but /dev/null and a pipe for
 * its output. It is killed after its time limit, which does not end an execve() that hangs, as on a filesystem that does
 * not answer: then exec_run() returns with that only, and whoever gave the exec helper its order ends both.
 */
#ifndef FLEXGRAFT_PROCESS_EXEC_H
#define FLEXGRAFT_PROCESS_EXEC_H

#include <stdbool.h>

#include "base/error.h"

#define COMMAND_OUTPUT_SIZE 400

struct exec {
        const char *name;             /* found in /usr/sbin, /sbin, /usr/bin, /bin */
        const char *path;             /* or its path; NULL: by name */
        const char *const *arguments; /* argv: the name first, NULL last */
        unsigned timeout_seconds;
        bool privileged; /* keeps the capabilities of the exec helper */
        int report_fd;   /* standard output; < 0: the same pipe as standard error */
        int call_off_fd; /* killed as soon as something can be read here; <= 0: nothing calls it off */
};

struct exec_end {
        int errnum;                       /* 0: it ran, and exited */
        int status;                       /* its exit status */
        char output[COMMAND_OUTPUT_SIZE]; /* the first and the last part of its output, on one line */
};

/* exec_find() - where a program of this name is. Gives: ret_path, of PATH_MAX bytes. False: it is not installed. */
bool exec_find(const char *name, char *ret_path);

/* exec_run() - run it and wait for it. */
void exec_run(const struct exec *command, struct exec_end *ret_end);

/*
 * exec_check() - the exit status of a program that ran, or an error: ENOENT it is not installed; ETIMEDOUT it was
 * killed after so many seconds; ECANCELED it was killed by a signal.
 */
int exec_check(const char *name, const struct exec_end *end, unsigned timeout_seconds, struct error *error);

/* exec_own_directory() - where the running program is, without a slash at its end. ret_dir: of PATH_MAX bytes. */
int exec_own_directory(char *ret_dir);

/*
 * exec_beside() - become another program of the running one's own directory, with the same environment and privileges.
 * Returns only after a failure, with the error filled; the subject is the program's path.
 */
void exec_beside(const char *name, char **argv, struct error *error);

#endif
