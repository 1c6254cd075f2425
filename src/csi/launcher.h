/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launcher.h - a second process that starts flexgraft's programs, so that the one that reads what clients send has no
 * execve and no capabilities.
 *
 * It knows by name which programs it starts; it reads nothing but orders. It dies with the driver. What it started goes on:
 * a program that was begun is finished. A driver that is started meanwhile knows nothing of it, and kubelet may give up
 * the call: a volume that is unpublished before its publish ends would be published for nobody. So each program holds a
 * lock on what its call is for, as long as it runs.
 */
#ifndef FLEXGRAFT_CSI_LAUNCHER_H
#define FLEXGRAFT_CSI_LAUNCHER_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define LAUNCHER_PROGRAMS 48                     /* that run at one time */
#define LAUNCHER_ORDER_BYTES ((size_t)96 * 1024) /* an order with the names behind it */
#define LAUNCHER_ARGUMENTS 64

/*
 * An order: behind it the program's name and its arguments, each with its terminator. With it come two descriptors, the
 * program's standard input and output.
 */
struct launcher_order {
        uint32_t id; /* whatever the giver wants to get back */
        uint32_t texts;
        uint64_t alone; /* no other program for this may run, whichever driver began it; 0: any may */
};

/* What became of it. */
struct launcher_end {
        uint32_t id;
        int32_t status; /* the program's exit status; -1: see the others */
        int32_t signal; /* that killed it; 0: none */
        int32_t error;  /* errno: it could not be started; EINPROGRESS one for the same runs; 0: it was */
};

/*
 * launcher_begin() - start it, with all the privileges that this process has. Returns a SOCK_SEQPACKET for orders and
 * ends, owned by the caller. The launcher ends when that is closed.
 */
int launcher_begin(struct error *error);

#endif
