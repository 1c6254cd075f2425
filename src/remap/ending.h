/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ending.h - the end of a mount: closing files of a server can take as long as the server does not answer.
 */
#ifndef FLEXGRAFT_REMAP_ENDING_H
#define FLEXGRAFT_REMAP_ENDING_H

#include <stdbool.h>

/* ending_begin() - note whether the source is NFS, and that this daemon uses it. */
void ending_begin(void);

/*
 * ending_force() - the container or the mount is ending, and something waits: start a process that ends what waits for
 * an NFS server that does not answer (mount/dead_server.h). Once.
 */
void ending_force(void);

/* ending_forces() - whether it runs. */
bool ending_forces(void);

/*
 * ending_close() - close everything, in a process that does nothing else, and exit. A process that closes while it exits
 * cannot be killed any more; one that calls close() can.
 */
_Noreturn void ending_close(void);

/*
 * ending_leave() - exit, and leave all that is open to the daemon, which has not ended though it was killed, but for the
 * lock. Of NFS it returns: what waits there is ended by ending_force().
 */
void ending_leave(void);

#endif
