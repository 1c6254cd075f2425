/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program.h - how every program starts, and how it finds the other programs of flexgraft.
 */
#ifndef FLEXGRAFT_PROCESS_PROGRAM_H
#define FLEXGRAFT_PROCESS_PROGRAM_H

#include <stdbool.h>

#include "base/error.h"
#include "process/privileges.h"

struct program {
        const char *name;
        const char *help; /* --help without its first line */
        const struct privileges *privileges;
        const char *arguments; /* for the usage line; NULL: a request */
        /* called with all privileges; NULL: nothing */
        int (*before_drop)(int argc, char **argv, struct error *error);
};

/*
 * program_begin() - print --help and --version (and exit), open descriptors 0 to 2 if they are closed, so that no other
 * file becomes standard output, and drop privileges.
 *
 * Errors: those of privileges_drop(): not root.
 */
int program_begin(const struct program *program, int argc, char **argv, struct error *error);

/*
 * program_find_sibling() - the path of another program of flexgraft: beside the running one, among the driver's verbs,
 * or where "make install" puts it.
 *
 * Gives:   ret_path, PATH_MAX bytes. False: it is not installed.
 */
bool program_find_sibling(const char *name, char *ret_path);

#endif
