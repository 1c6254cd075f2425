/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage.h - the text of --help, made of what a program says of itself: at most 80 columns, the usage line first.
 */
#ifndef FLEXGRAFT_PROCESS_USAGE_H
#define FLEXGRAFT_PROCESS_USAGE_H

#include "base/schema.h"

/* An option before the arguments. */
struct usage_option {
        const char *name;         /* "--table"; NULL ends them */
        const char *const *words; /* what has to follow it, one of these two; NULL: nothing follows */
        const char *help;
        const char **ret_word; /* set when the option is given: to the word, or to the option's name */
};

struct usage {
        const char *name;                   /* of the program */
        const char *arguments;              /* as the usage line has them; NULL: words, or "REQUEST | -" */
        const char *about;                  /* what it does, in sentences; a newline begins a paragraph */
        const struct usage_option *options; /* NULL: none but those of every program */
        const struct schema *schema;        /* NULL: no request and no reply */
        const char *examples;               /* printed as they are, a line each; NULL: none */
        const char *exit_status;            /* NULL: as most programs have it */
};

/* Of every program that takes words. */
extern const struct usage_option usage_of_words[];
extern const char *usage_json;
extern const char *usage_verbose;

/*
 * Of a program that may take long. It tells how far it is (base/progress), and what it was doing is taken back when it
 * is interrupted (base/interrupt).
 */
extern const struct usage_option usage_of_long[];
extern const char *usage_progress;

/* usage_say() - print it. Returns 0 or negative errno. */
int usage_say(const struct usage *usage);

#endif
