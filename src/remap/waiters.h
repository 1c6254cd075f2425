/* SPDX-License-Identifier: Apache-2.0 */
/*
 * waiters.h - lock requests that are answered later: when their lock can be had, and when what the container's kernel
 * remembers of the file is dropped. Each is kept in shared memory, for the next daemon.
 */
#ifndef FLEXGRAFT_REMAP_WAITERS_H
#define FLEXGRAFT_REMAP_WAITERS_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "caches.h"
#include "fuse_library.h"
#include "shared.h"

struct waiter {
        struct caches_job job; /* first: the job is the waiter */
        fuse_req_t request;
        uint64_t unique; /* the request's number */
        pid_t thread;    /* who makes it; 0: not known */
        int slot; /* in shared->waiters, which has a copy of the request for the next daemon; -1: the table was full */
        struct opener by;
        int fd;
        int operation;     /* of flock(2); 0: a POSIX lock */
        struct flock lock; /* the POSIX lock */
        uint64_t owner;    /* of it */
        bool interrupted;  /* atomic */
        bool given_up;     /* its caller has its answer; atomic */
        bool waited;       /* another had the lock when this daemon tried first */
        struct waiter *next;
        TAILQ_ENTRY(waiter) entry; /* of all */
};

/* waiters_begin() - start the thread that retries, once it has called before(). Returns 0 or negative errno. */
int waiters_begin(void (*before)(void));

/* waiters_rest() - run function() while that thread holds no mutex. */
void waiters_rest(void (*function)(void));

/*
 * waiters_make() - this thread's request. lock: NULL for flock(2). waits: another has the lock.
 *
 * Returns: NULL without memory, and where the next daemon could not repeat it as too many wait, or too many of that process
 * or user.
 */
struct waiter *waiters_make(fuse_req_t request, fuse_ino_t node, int fd, int operation, const struct flock *lock,
                            bool waits);

/*
 * waiters_repeat() - this thread is about to repeat the request in that slot, where it stays meanwhile; -1: it has done so,
 * and what was answered at once is there no more.
 */
void waiters_repeat(int slot);

/* waiters_wait() - retry it until it has its lock; then as waiters_grant(). */
void waiters_wait(struct waiter *waiter);

/* waiters_grant() - it has its lock: answer when what the last holder wrote will be read anew. */
void waiters_grant(struct waiter *waiter);

/* waiters_end() - answer it, and free it. */
void waiters_end(struct waiter *waiter, int r);

/* waiters_look() - answer those of processes that are being killed, some of them with each call: interrupts_look(). */
void waiters_look(void);

/* waiters_have() - whether one uses that descriptor. waiters_have_asking() - and its caller waits for the answer. */
bool waiters_have(int fd);
bool waiters_have_asking(int fd);

/* waiters_retry() - a lock was released. */
void waiters_retry(void);

/* waiters_would_wait() - whether that result means that another holds the lock. */
bool waiters_would_wait(int r);

/* waiters_unlock() - release a POSIX lock. */
void waiters_unlock(int fd, const struct flock *lock);

#endif
