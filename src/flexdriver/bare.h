/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bare.h - a program without a C library: where it starts, and the system calls it makes.
 *
 * kubelet starts flexdriver for every verb, and it only executes another program. Half a millisecond of a static
 * program's time is the start of glibc (some seventy CPUID instructions, each of which exits a virtual machine); without
 * it a program starts in a fifth of the time.
 *
 * On other processors, and with the sanitizers, the C library provides the same functions.
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
