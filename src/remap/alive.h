/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alive.h - whether the mount, the container and the daemon go on: what the keeper asks.
 */
#ifndef FLEXGRAFT_REMAP_ALIVE_H
#define FLEXGRAFT_REMAP_ALIVE_H

#include <stdbool.h>
#include <stdint.h>

/* alive_mount_is_over() - whether the filesystem is unmounted everywhere. */
bool alive_mount_is_over(void);

/*
 * alive_container_is_ending() - whether the container's first process is exiting and cannot, because processes in it may
 * wait for answers.
 */
bool alive_container_is_ending(void);

/*
 * alive_daemon_is_stuck() - whether the daemon was killed, or has left, but one of its threads waits in the kernel for an
 * answer that only the next daemon gives: for a page that is being read. Its first thread, which only waits for others, has
 * ended then, and each of the others waits so, or has ended, too. That the first has ended is not enough: the others may
 * not have come to their ends, and would read and answer requests beside the next daemon, in the memory that is its, too.
 *
 * since_ms: since when it is found so (base/clock), 0 at first: it is asked again and again, and true is said after a while.
 */
bool alive_daemon_is_stuck(int64_t *since_ms);

#endif
