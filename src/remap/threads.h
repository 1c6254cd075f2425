/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threads.h - the daemon's threads that read requests: as many as are needed, each with the buffer of its slot.
 */
#ifndef FLEXGRAFT_REMAP_THREADS_H
#define FLEXGRAFT_REMAP_THREADS_H

/* threads_begin() - before the daemon's second thread. Returns 0 or negative errno. */
int threads_begin(void);

/* threads_serve() - answer requests until the filesystem is unmounted (0) or an error; first those that the last daemon left. */
int threads_serve(void);

/*
 * threads_rest() - run function() while no thread answers a request or starts a thread: a process that function() forks
 * finds all mutexes of the C library free.
 */
void threads_rest(void (*function)(void));

#endif
