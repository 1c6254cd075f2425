/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dead_server.h - end what waits for an NFS server that does not answer, on a mount that is being taken away.
 *
 * A process that has written to a dead server waits in the kernel for its answer and cannot be killed, before or after
 * the mount is detached. umount2(MNT_FORCE) fails the requests that are under way with EIO, one time; the next ones
 * wait again (docs/KERNEL.md#nfs). So it is repeated. It needs a place in a mount namespace, and the mount stays while
 * a descriptor of it is open.
 *
 * While the server answers anything, nothing is forced: unwritten data are still written.
 */
#ifndef FLEXGRAFT_MOUNT_DEAD_SERVER_H
#define FLEXGRAFT_MOUNT_DEAD_SERVER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define DEAD_SERVER_TICK_MS 200 /* between two looks */

struct dead_server {
        FILE *statistics;
        bool taken;  /* the mount is in the private mount namespace */
        bool forced; /* the last look ended what waits, and nothing was answered since */
        uint64_t sent;
        uint64_t received;
        int64_t sent_ms; /* when these changed */
        int64_t received_ms;
};

/*
 * dead_server_begin() - take an NFS mount into a private mount namespace of this process, which then does nothing else.
 * The mounts there follow the node's, so that they keep nothing busy that is unmounted on the node.
 *
 * Takes:   a path to a mount point, relative to dir_fd; or "" and a detached mount.
 * Needs:   CAP_SYS_ADMIN.
 * Errors:  EMEDIUMTYPE no NFS; EBUSY the filesystem is mounted elsewhere on the node, too, where its users may wait.
 */
int dead_server_begin(int dir_fd, const char *path, struct dead_server *ret_server);

/* dead_server_look() - if the server is dead by now, end what waits. Returns whether it did. */
bool dead_server_look(struct dead_server *server);

/*
 * dead_server_end() - give the mount up, before this process ends; also where dead_server_begin() failed. What uses a
 * filesystem last ends it, and may wait for its server: in a system call that can mostly be killed, unlike a process that has
 * ended. So this process is killed by then: after seconds where the server was dead, else after minutes, in which what was
 * not written yet may be. Descriptors of the mount are to be closed next, and nothing else is done.
 */
void dead_server_end(struct dead_server *server);

#endif
