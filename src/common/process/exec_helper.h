/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec_helper.h - a second process of a program that may execute nothing: started before that gives its privileges away, it
 * takes orders over a socket, and carries out no others than it knows.
 */
#ifndef FLEXGRAFT_PROCESS_EXEC_HELPER_H
#define FLEXGRAFT_PROCESS_EXEC_HELPER_H

#include <sys/types.h>

#include "base/error.h"
#include "process/privileges.h"

struct exec_helper {
        int fd;           /* where orders go and answers come from: a SOCK_SEQPACKET; -EBADF: there is none */
        pid_t pid;        /* 0: there is none */
        const char *name; /* for errors */
        const struct privileges *privileges; /* those that it keeps, of which what it executes inherits no more */
        void (*serve)(int fd);               /* take orders, until there is nobody left to give one */
};

/*
 * exec_helper_begin() - start it. Before privileges_drop(); it ends with us. It has nothing of ours but the socket: its
 * standard files are /dev/null, so that nobody who waits for ours to close waits for it, or for what it starts.
 */
int exec_helper_begin(struct exec_helper *runner, struct error *error);

/* exec_helper_end() - it, and what it runs and waits for, end; nothing if there is none. */
void exec_helper_end(struct exec_helper *runner);

#endif
