/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verb_main.h - the one body of the verbs that act on a volume.
 */
#ifndef FLEXGRAFT_VOLUME_VERB_MAIN_H
#define FLEXGRAFT_VOLUME_VERB_MAIN_H

#include "process/program.h"
#include "volume/call.h"

/* volume_verb_main() - one call, one reply. function: what the verb does, run by a worker. Returns the program's exit status. */
int volume_verb_main(const struct program *program, enum verb verb, volume_function *function, int argc, char **argv);

#endif
