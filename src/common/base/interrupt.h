/* SPDX-License-Identifier: Apache-2.0 */
/*
 * interrupt.h - a program that may take long is asked to end (^C, SIGTERM, a terminal that is closed): it ends at the
 * next place where it can, as a call that failed, and takes back what it had begun.
 */
#ifndef FLEXGRAFT_BASE_INTERRUPT_H
#define FLEXGRAFT_BASE_INTERRUPT_H

#include <signal.h>
#include <stdbool.h>

#include "base/error.h"

/*
 * interrupt_begin() - from now on the first such signal is noted, and a second one ends the process at once. A signal
 * that was ignored before, as that of a program in the background, stays ignored.
 */
void interrupt_begin(void);

/*
 * INTERRUPT_NUDGE - what a process that was asked to end sends to its worker, which may wait in a system call and have
 * got no signal itself.
 */
#define INTERRUPT_NUDGE SIGUSR1

/* interrupt_is_noted() - whether the process was asked to end. */
bool interrupt_is_noted(void);

/*
 * interrupt_forget() - before what was begun is taken back, which is not given up; a second signal ends the process.
 */
void interrupt_forget(void);

/*
 * interrupt_at_end() - from now on a signal that ends this process has it call the function, which does only what a signal
 * handler may, and sends it that signal anew; or fails (negative): then it exits. NULL: not any more. Of a process that
 * waits: a call that hangs is not ended so.
 */
void interrupt_at_end(int (*function)(int number));

/* interrupt_ignore() - in a child that works for a program: its parent is asked to end, and tells it. */
void interrupt_ignore(void);

/* interrupt_default() - in a child that becomes another program, which is asked to end itself. */
void interrupt_default(void);

/* interrupt_check() - 0, or -ECANCELED with the error filled if the program was asked to end. subject: borrowed. */
int interrupt_check(const char *operation, const char *subject, struct error *error);

#endif
