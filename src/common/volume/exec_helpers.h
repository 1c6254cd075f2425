/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec_helpers.h - the processes that run other programs for a verb: mkfs and the like, lvm, pmem-namespaces,
 * remap-daemon.
 *
 * They are started before the verb drops its privileges, and only those that the volume's kind needs. What the request
 * says is read by a process without privileges (process/sealed_child.h), unless none of its strings is the word of a
 * kind that runs programs. Where the kind cannot be known before the work begins, those of all kinds are started.
 */
#ifndef FLEXGRAFT_VOLUME_EXEC_HELPERS_H
#define FLEXGRAFT_VOLUME_EXEC_HELPERS_H

#include <stdbool.h>

#include "base/error.h"
#include "volume/kind.h"
#include "volume/verbs.h"

/* volume_exec_helpers_begin() - start them, for the verb that argv[0] ends in. Before privileges_drop(). */
int volume_exec_helpers_begin(int argc, char **argv, struct error *error);

/* volume_exec_helpers_of() - those that a kind needs for a verb: VOLUME_RUNS_*. */
unsigned volume_exec_helpers_of(const struct volume_kind *kind, enum verb verb);

/*
 * volume_exec_helpers_clearly_none() - whether the strings of a verb's arguments show, before a parser sees them, that the
 * options say a kind that runs nothing for the verb: one is the key "type", and none is the word of another kind.
 */
bool volume_exec_helpers_clearly_none(enum verb verb, int argc, char **argv);

/* volume_exec_helpers_begin_for() - start those of VOLUME_RUNS_* (volume/kind.h). */
int volume_exec_helpers_begin_for(unsigned runs, int argc, char **argv, struct error *error);

/* volume_exec_helpers_begun() - whether there are any. */
bool volume_exec_helpers_begun(void);

/* volume_exec_helpers_suffice() - whether those of VOLUME_RUNS_* were started. */
bool volume_exec_helpers_suffice(unsigned runs);

/*
 * volume_exec_helpers_end_killed() - for what is to be undone after the worker that gave them orders was killed: end
 * the one for mkfs and the like, which may still write to the device, and any other that has an order under way.
 * Returns whether one had: then nothing can be asked of it any more.
 */
bool volume_exec_helpers_end_killed(void);

/* volume_exec_helpers_end() - end them, with the programs that they run. */
void volume_exec_helpers_end(void);

#endif
