/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker.h - run a function in a child process with a time limit.
 *
 * A path through a dead NFS mount, a FUSE filesystem that does not answer or a failing disk can block a system call
 * forever. So the program's work is done by a child; the parent watches the clock and always answers.
 */
#ifndef FLEXGRAFT_PROCESS_WORKER_H
#define FLEXGRAFT_PROCESS_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef int worker_function(void *argument, struct error *error);

/*
 * worker_dies_with_parent() - have the kernel kill this process when its parent ends; exit if it has ended already.
 * Call it again after every change of ids, at which the kernel clears the setting
 * (docs/KERNEL.md#a-helper-inside-a-containers-user-namespace). Takes parent_pid, which the parent read with getpid()
 * before it created this process.
 */
void worker_dies_with_parent(int parent_pid);

/*
 * The descriptor by which whoever starts a program may give it a lock to hold as long as it runs. A program that may leave a
 * hanging child, which shares it, closes it and the standard files at exit: the next one, and a reader of its pipe, may go
 * on. When a signal ends it while it waits for such a child, it closes all.
 */
#define WORKER_GIVEN_FD 3

/*
 * worker_run() - run function(argument, error) in a child that shares memory and descriptors with this process, but not
 * the working directory, root and mount namespace, so that it may enter a container's. Wait for it; kill it when the
 * time is over.
 *
 * Sharing memory makes the child as cheap as a thread (docs/KERNEL.md#what-a-process-costs), and the caller can see
 * and undo what a killed child left. Unlike a thread, it can be left behind in an uninterruptible sleep while the
 * program exits. The function must leave memory in a state in which it may be killed at any time; a killed child never
 * runs again, so afterwards only the caller uses the memory.
 *
 * Returns: the function's result. Errors: the function's; ETIMEDOUT after deadline_ms (clock_now_ms()'s clock);
 *          ECANCELED when a signal killed the child; the error names it.
 */
int worker_run(worker_function *function, void *argument, int64_t deadline_ms, struct error *error);

/*
 * ---- a worker that holds what other calls wait for, and asks a container, which may answer slowly or not at all: it gets
 * less time for that than for its own work.
 *
 * worker_allow_others() - from now on, so much time in all for what workers of this program wait for others; once that is
 * over, a short time for each. 0: as much as the worker has.
 *
 * worker_waits_for_others() - in the worker: what comes now is such a wait, or is none any more. Returns what it was before.
 * worker_others_were_late() - whether the last worker_run() was ended (ETIMEDOUT) because the time for that was over.
 */
void worker_allow_others(int64_t milliseconds);
bool worker_waits_for_others(bool waits);
bool worker_others_were_late(void);

/*
 * worker_run_without_fds() - the same in a child without any descriptor of this process. Closing one can hang, too, as
 * that of a block device that does not answer: what the child has opened, only the child ever closes.
 */
int worker_run_without_fds(worker_function *function, void *argument, int64_t deadline_ms, struct error *error);

/*
 * worker_run_apart() - run function(argument) in one more child like a worker's, for a step that needs namespaces or
 * ids that this process may not have afterwards: namespaces of its own, or a container's mount namespace. It shares
 * memory, so a fork's copies of page tables (most of the cost of process/sealed_child) are not made; therefore it is
 * not for a container's user namespace. The caller sleeps until the child has ended, and the child dies with the
 * caller, whose own time limit holds for both.
 *
 * When the function has succeeded, and before the child is waited for (so that its pid cannot be reused),
 * attendant(pid, argument), if any, does from outside what the child may not do. If it fails, all fails.
 *
 * Returns: the function's result; descriptors that it opened belong to the caller. Errors: the function's; ECANCELED
 *          when a signal killed the child.
 */
typedef int worker_attendant(int pid, void *argument, struct error *error);
int worker_run_apart(worker_function *function, worker_attendant *attendant, void *argument, struct error *error);

/*
 * worker_leave_behind() - run function(fd) in a process with memory of its own, which outlives this program. It has a
 * session of its own, and no descriptor but that one. The program does not wait for it, and nobody hears of its errors.
 */
void worker_leave_behind(void (*function)(int fd), int fd);

/*
 * ---- ask many things, of which some may not answer: files of a dead NFS server or of a silent FUSE filesystem, a
 * container's processes.
 *
 * A worker (process/worker.h) asks as many as answer within half of its share of time. One that has not answered when the
 * share is over is given up, and the next worker goes on after it: it costs its own answer and one share, not the others'.
 */

struct ask {
        size_t count;
        void *argument; /* of the two functions */
        /* ask one of them, by its number, in a worker, which may be killed at any time */
        void (*one)(struct ask *ask, size_t index);
        /* note that one did not answer (ETIMEDOUT), that its worker was killed (ECANCELED), or that there was none; or NULL */
        void (*give_up)(struct ask *ask, size_t index, const struct error *error);
        int64_t share_ms;    /* a worker's time; give_up() may change it */
        int64_t deadline_ms; /* of all (clock_now_ms()'s clock) */
        /* called before each worker, in the program; or NULL */
        void (*begin)(struct ask *ask);
        bool without_fds; /* worker_run_without_fds() */
        int kept_fd;      /* then: the one descriptor of the program that the worker has all the same; 0: none */
        size_t next;      /* the one that is asked; give_up() may pass over those that follow */
        bool began;       /* the worker of now has asked one */
        bool lost;        /* the last one was asked, did not answer, and was not given up: there was no time for more */
        int64_t until_ms; /* with the next one another worker begins */
};

/*
 * ask_all() - begin with the first. Returns how many were asked or given up: all, or fewer when the deadline came, or when a
 * worker had no time to begin.
 */
size_t ask_all(struct ask *ask);

#endif
