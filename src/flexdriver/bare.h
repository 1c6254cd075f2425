/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bare.h - the driver before its C library: where the program starts, and the system calls that it makes there.
 *
 * kubelet asks for init again and again. Half a millisecond of a static program's time is the start of glibc (some
 * seventy CPUID instructions, each of which exits a virtual machine); an answer without it takes a fifth of the time.
 *
 * With BARE, start.c, bare.c and what flexdriver_answer() needs are one object of which only bare_start is seen, the
 * program's entry: it answers, or goes on to the C library's _start as if it had not been there. On other processors, in
 * position-independent programs and with the sanitizers there is none, and main() asks flexdriver_answer() itself.
 */
#ifndef FLEXGRAFT_BARE_H
#define FLEXGRAFT_BARE_H

/* System calls: their results, or negative errno. */
#ifdef BARE
long bare_call(long number, long a, long b, long c, long d, long e);
#else
#include <errno.h>
#include <unistd.h>

static inline long bare_call(long number, long a, long b, long c, long d, long e)
{
        long result = syscall(number, a, b, c, d, e);

        return result < 0 ? -errno : result;
}
#endif

#endif
