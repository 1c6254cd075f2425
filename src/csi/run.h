/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.h - programs of flexgraft that run for calls: at most LAUNCHER_PROGRAMS at one time, the rest in the order in which
 * they were asked for. The Controller's have a queue of their own: what is slow there delays no pod. In both, those that
 * may take hours or wait for a server take three of four places at most, those of one method three of four of these, and
 * those of one method that wait for one server a third of these again, or two, where it is not known to be one; two, too,
 * those that wait for servers that one author of pods has named. The others have the rest.
 */
#ifndef FLEXGRAFT_CSI_RUN_H
#define FLEXGRAFT_CSI_RUN_H

#include <stdbool.h>

#include "base/error.h"
#include "call.h"

struct run;

enum run_queue {
        RUN_CONTROLLER,
        RUN_NODE, /* and all others */
        RUN_QUEUES
};

/* Which places it may have, and what it excludes. Texts are borrowed while run_begin() runs, but for slow. */
struct run_place {
        enum run_queue queue;
        const char *slow; /* the method of its call, always the same pointer, if it may take hours; NULL: it does not */
        struct awaited awaited; /* what a slow one may wait for */
        const char
                *alone; /* what no two programs may work on at one time, whichever driver began them; NULL: nothing */
};

/* With what came of it; the outcome lives as long as the function runs. */
typedef void run_ended(void *argument, const struct outcome *outcome);

/* runs_begin() - before the privileges are dropped: start the launcher. */
int runs_begin(struct error *error);

/* runs_serve() - after loop_begin(): have the loop take what the launcher says. */
int runs_serve(struct error *error);

/* runs_failed() - whether the launcher has ended: no program can be run any more. */
bool runs_failed(void);

/*
 * run_begin() - have a program run, and ended(argument, outcome) called in a later turn of the loop, unless it is
 * cancelled. Program, arguments (argv[1] and on, NULL ends them) and input (NULL: none) are copied. Where one that an
 * earlier driver began runs, which has the same alone, it does not run, and the outcome is "occupied".
 *
 * Returns: it, borrowed, until ended() is called.
 */
struct run *run_begin(const struct run_place *place, const char *program, const char *const arguments[],
                      const char *input, run_ended *ended, void *argument);

/* run_cancel() - take it back, if it still waits for others. Whether it did: then it is gone, and never ends. */
bool run_cancel(struct run *run);

#endif
