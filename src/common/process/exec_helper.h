/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec_helper.h - a second process that runs external programs for a program that may not call execve.
 *
 * It is started before the program drops its privileges. It receives orders over a socket and carries out only those
 * that it knows, so that a program that is taken over cannot execute anything else.
 */
#ifndef FLEXGRAFT_PROCESS_EXEC_HELPER_H
#define FLEXGRAFT_PROCESS_EXEC_HELPER_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "process/privileges.h"

struct exec_helper {
        int fd;                              /* a SOCK_SEQPACKET for orders and answers; -EBADF: no helper */
        pid_t pid;                           /* 0: no helper */
        const char *name;                    /* for errors */
        const struct privileges *privileges; /* that it keeps; external programs inherit at most these */
        void (*serve)(int fd);               /* carry out orders until the socket is closed */
        bool ordered;                        /* an order is under way, though who gave it may have been killed */
};

/*
 * exec_helper_begin() - start it, before privileges_drop(). It ends with this process. It has no descriptor but the
 * socket; its standard input, output and error are /dev/null, so that a reader of ours does not wait for the helper or
 * for its external programs.
 */
int exec_helper_begin(struct exec_helper *helper, struct error *error);

/*
 * exec_helper_end_ordered() - end it, where an order is under way: after its program's worker was killed it would
 * answer the wrong question. Returns whether there was one.
 */
bool exec_helper_end_ordered(struct exec_helper *helper);

/* exec_helper_end() - kill it and the external program that it runs; nothing if there is no helper. */
void exec_helper_end(struct exec_helper *helper);

/*
 * ---- an external program with subcommands that prints JSON reports: lvm, pmem-namespaces.
 *
 * An exec helper (process/exec_helper) runs it, and no other program, with no other subcommands than those in a list.
 */

struct exec_json {
        const char *name;                  /* the program */
        bool own;                          /* a program of flexgraft (program_find_sibling()) */
        const char *const *known;          /* subcommands that may be run; NULL ends the list */
        const char *const *(*extra)(void); /* two arguments more, after take(), ended by NULL; NULL: none */
        bool (*take)(const char *word); /* whether an argument is for the helper itself, which does what it says before;
                                              NULL: none is */
};

/* exec_json_serve() - in the exec helper: carry out orders until the socket is closed. */
void exec_json_serve(int fd, const struct exec_json *program);

/*
 * exec_json_run() - have the helper run a subcommand with its arguments, ended by NULL.
 *
 * Gives:   ret_report: NULL, or what the program printed, as JSON; owned by the caller.
 * Errors:  ENOSYS there is no helper; ENOPKG the program is not installed; those of exec_check(); EIO it failed, with
 *          the end of its output; EPROTO its output is no JSON object, or one that json_file_load() refuses.
 */
int exec_json_run(struct exec_helper *helper, const struct exec_json *program, const char *const *words,
                  json_t **ret_report, struct error *error);

#endif
