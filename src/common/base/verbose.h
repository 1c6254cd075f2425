/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verbose.h - what a program does, step by step, on standard error, if it was asked to say so (--verbose).
 *
 * Lines say what a log may have in it: no secret.
 */
#ifndef FLEXGRAFT_BASE_VERBOSE_H
#define FLEXGRAFT_BASE_VERBOSE_H

#include <stdbool.h>

/* verbose_begin() - say it from now on; program: printed before each line. Borrowed. */
void verbose_begin(const char *program);

/* verbose_is_asked() - whether verbose_say() prints anything. */
bool verbose_is_asked(void);

/* verbose_say() - a line; nothing before verbose_begin(), or where standard error takes none at once. */
void verbose_say(const char *text);

#endif
