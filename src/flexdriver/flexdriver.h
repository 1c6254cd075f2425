/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flexdriver.h - one program for all verbs: what it answers at once, and the verbs' own functions.
 *
 * flexdriver.c uses only string functions of the C library: it is also there without one (flexdriver/bare.h).
 */
#ifndef FLEXGRAFT_FLEXDRIVER_H
#define FLEXGRAFT_FLEXDRIVER_H

#include "volume/verbs.h"

/*
 * flexdriver_verb() - the verb that a command line asks for: VENDOR~DRIVER/DRIVER VERB ..., or verbs/VERB ..., as the
 * program is also called. VERBS: none.
 *
 * Gives:   ret_words, how many words there are before the one that names it.
 */
enum verb flexdriver_verb(int argc, char **argv, int *ret_words);

/*
 * flexdriver_answer() - answer init, --help, --version, and verbs that no volume of the driver has.
 *
 * Privileges: it drops all before it answers, with init's filter; a verb's own function still has them.
 * Returns: the exit status, or FLEXDRIVER_NO_ANSWER: it is a verb's.
 */
int flexdriver_answer(int argc, char **argv);

#define FLEXDRIVER_NO_ANSWER (-1)

/* attach_main() and so on: main() of a verb, with the driver's name as in verbs/VERB in its argv[0]. */
#define VERB_MAIN(name, word, letters, arguments, traits) int word##_main(int argc, char **argv);
VOLUME_VERBS(VERB_MAIN)
#undef VERB_MAIN

#endif
