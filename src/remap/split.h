/* SPDX-License-Identifier: Apache-2.0 */
/*
 * split.h - a child that shares the descriptors and has a copy of the memory, which fork() cannot do.
 */
#ifndef FLEXGRAFT_REMAP_SPLIT_H
#define FLEXGRAFT_REMAP_SPLIT_H

#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * split() - as fork(). Gives ret_pidfd, the child's, before the child runs; it is not changed where there is none. The kernel
 * writes a number there that it gives back, if it refuses the child after that, as a control group's limit of processes does.
 */
static inline int split(int *ret_pidfd)
{
        const int before = *ret_pidfd;
        const int pid = (int)syscall(SYS_clone, CLONE_FILES | CLONE_PIDFD | SIGCHLD, NULL, ret_pidfd, NULL, NULL);

        if (pid < 0)
                *ret_pidfd = before;
        return pid;
}

#endif
