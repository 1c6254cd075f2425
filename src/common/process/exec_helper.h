/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec_helper.h - a second process that runs external programs for a program that may not call execve.
 *
 * It is started before the program drops its privileges. It receives orders over a socket and carries out only those
 * that it knows, so that a program that is taken over cannot execute anything else.
 */
#ifndef FLEXGRAFT_PROCESS_EXEC_HELPER_H
#define FLEXGRAFT_PROCESS_EXEC_HELPER_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "process/privileges.h"

struct exec_helper {
        int fd;                              /* a SOCK_SEQPACKET for orders and answers; -EBADF: no helper */
        pid_t pid;                           /* 0: no helper */
        const char *name;                    /* for errors */
        const struct privileges *privileges; /* that it keeps; external programs inherit at most these */
        void (*serve)(int fd);               /* carry out orders until the socket is closed */
        bool ordered;                        /* an order is under way, though who gave it may have been killed */
};

/*
 * exec_helper_begin() - start it, before privileges_drop(). It ends with this process. It has no descriptor but the
 * socket; its standard input, output and error are /dev/null, so that a reader of ours does not wait for the helper or
 * for its external programs.
 */
int exec_helper_begin(struct exec_helper *helper, struct error *error);

/*
 * exec_helper_end_ordered() - end it, where an order is under way: after its program's worker was killed it would
 * answer the wrong question. Returns whether there was one.
 */
bool exec_helper_end_ordered(struct exec_helper *helper);

/* exec_helper_end() - kill it and the external program that it runs; nothing if there is no helper. */
void exec_helper_end(struct exec_helper *helper);

#endif
