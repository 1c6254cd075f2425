/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program.h - what a program says of itself, how it starts, and how it finds the other programs of flexgraft.
 */
#ifndef FLEXGRAFT_PROCESS_PROGRAM_H
#define FLEXGRAFT_PROCESS_PROGRAM_H

#include <stdbool.h>

#include "base/error.h"
#include "process/privileges.h"
#include "process/usage.h"

struct program {
        struct usage usage; /* what --help says of it */
        const struct privileges *privileges;
        bool rootless;      /* it does what it may without root */
        bool takes_names;   /* with several arguments, the first may begin with a dash */
        bool takes_options; /* before_drop() reads them, and refuses those that it does not know */
        /* called with all privileges; NULL: nothing */
        int (*before_drop)(int argc, char **argv, struct error *error);
};

/*
 * program_begin() - print --help, --version or --schema (and exit), open descriptors 0 to 2 if they are closed, so that
 * no other file becomes standard output, and drop privileges.
 *
 * Errors: OPERATION_PARSE for an option that the program does not have; those of privileges_drop(): not root.
 */
int program_begin(const struct program *program, int argc, char **argv, struct error *error);

/*
 * program_begin_words() - the same, of a program that takes words and options, too (schema_has_words()). The options of
 * the program alone are taken from the arguments; what is left is one request in JSON, as text or "-".
 *
 * Gives:   argc and argv, changed.
 * Errors:  those of words_take(), too.
 */
int program_begin_words(const struct program *program, int *argc, char ***argv, struct error *error);

/*
 * program_find_sibling() - the path of another program of flexgraft: beside the running one, among the driver's verbs,
 * or where "make install" puts it.
 *
 * Gives:   ret_path, PATH_MAX bytes. False: it is not installed.
 */
bool program_find_sibling(const char *name, char *ret_path);

#endif
