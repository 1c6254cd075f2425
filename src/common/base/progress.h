/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.h - how far a program is with what takes long, on standard error: a bar for people, or lines of JSON.
 */
#ifndef FLEXGRAFT_BASE_PROGRESS_H
#define FLEXGRAFT_BASE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * progress_begin() - print it from now on. form: "json", "none", or NULL for a bar if standard error is a terminal.
 * Neither waits for its reader: locks are held. program: borrowed.
 */
void progress_begin(const char *program, const char *form);

/* progress_is_told() - whether progress_of() may print anything: what is done can be asked for only then. */
bool progress_is_told(void);

/*
 * progress_of() - so many bytes of a step are done; total_bytes 0: how many there are is not known. Prints what has
 * changed, at most ten times a second, and when the step is done. step: "erase"; subject: borrowed until the call ends.
 */
void progress_of(const char *step, const char *subject, uint64_t done_bytes, uint64_t total_bytes);

/* progress_end() - takes the bar away before something else is printed. */
void progress_end(void);

/*
 * ---- what a program does, step by step, on standard error, if it was asked to say so (--verbose).
 *
 * Lines say what a log may have in it: no secret.
 */

/* verbose_begin() - say it from now on; program: printed before each line. Borrowed. */
void verbose_begin(const char *program);

/* verbose_is_asked() - whether verbose_say() prints anything. */
bool verbose_is_asked(void);

/* verbose_say() - a line; nothing before verbose_begin(), or where standard error takes none at once. */
void verbose_say(const char *text);

#endif
