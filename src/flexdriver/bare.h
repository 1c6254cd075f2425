/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bare.h - a program without a C library: where it starts, and the system calls it makes.
 *
 * kubelet starts flexdriver for every verb, only for it to become another program. Half a millisecond of what a static
 * program costs is glibc making itself ready (it asks the processor some seventy questions, each of which leaves a
 * virtual machine); a program that needs none of that starts in a fifth of the time.
 *
 * On processors that are not named here, and with the sanitizers, the same functions are the C library's.
 */
#ifndef FLEXGRAFT_BARE_H
#define FLEXGRAFT_BARE_H

#include <stddef.h>

#if (defined(__x86_64__) || defined(__aarch64__)) && !defined(SANITIZE)
#define BARE 1
#endif

/* The program: argv and what follows it in memory, the environment. Returns the exit status. */
int bare_main(int argc, char **argv, char **environment);

/* System calls: their results, or negative errno. */
long bare_call(long number, long a, long b, long c, long d, long e);

#endif
