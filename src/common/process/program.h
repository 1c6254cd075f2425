/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program.h - what every program does first.
 */
#ifndef FLEXGRAFT_PROCESS_PROGRAM_H
#define FLEXGRAFT_PROCESS_PROGRAM_H

#include "base/error.h"
#include "process/privileges.h"

struct program {
        const char *name;
        const char *help; /* the whole of --help, less its first line */
        const struct privileges *privileges;
        const char *arguments; /* NULL: a request, as nearly everywhere */
        /* what has to be done with all privileges; NULL: nothing */
        int (*before_drop)(int argc, char **argv, struct error *error);
};

/*
 * program_begin() - answer --help and --version (and exit), make sure descriptors 0 to 2 are open, so that no file of
 * ours is taken for standard output, and drop privileges.
 *
 * Errors: those of privileges_drop(): not root.
 */
int program_begin(const struct program *program, int argc, char **argv, struct error *error);

#endif
