/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec_json.h - a program that is asked things and answers in JSON, run by a second process of ours (process/exec_helper.h): which
 * runs none but that one, and of its commands only those that are known.
 */
#ifndef FLEXGRAFT_PROCESS_EXEC_JSON_H
#define FLEXGRAFT_PROCESS_EXEC_JSON_H

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"
#include "process/exec_helper.h"

struct exec_json {
        const char *name;                  /* the program */
        bool own;                          /* one of ours (program_find_sibling()) */
        const char *const *known;          /* its commands, NULL ends them */
        const char *const *(*extra)(void); /* words after the command, NULL ends them; NULL: none */
};

/* exec_json_serve() - in the runner: take orders, until there is nobody left to give one. */
void exec_json_serve(int fd, const struct exec_json *reporter);

/*
 * exec_json_run() - a command and its words, NULL ends them.
 *
 * Gives:   ret_report: NULL, or what it printed, as JSON; owned by the caller.
 * Errors:  ENOSYS there is no runner; ENOPKG the program is not installed; otherwise those of exec_check(); EIO it
 * failed, with what it said; EPROTO no JSON.
 */
int exec_json_run(const struct exec_helper *runner, const struct exec_json *reporter, const char *const *words,
                  json_t **ret_report, struct error *error);

#endif
