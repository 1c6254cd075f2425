/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec_json.h - an external program with subcommands that prints JSON reports: lvm, pmem-namespaces.
 *
 * An exec helper (process/exec_helper) runs it, and no other program, with no other subcommands than those in a list.
 */
#ifndef FLEXGRAFT_PROCESS_EXEC_JSON_H
#define FLEXGRAFT_PROCESS_EXEC_JSON_H

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"
#include "process/exec_helper.h"

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
 *          the end of its output; EPROTO its output is not JSON.
 */
int exec_json_run(struct exec_helper *helper, const struct exec_json *program, const char *const *words,
                  json_t **ret_report, struct error *error);

#endif
