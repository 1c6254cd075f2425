/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ask.h - ask many things, of which some may not answer: files of a dead NFS server or of a silent FUSE filesystem, a
 * container's processes.
 *
 * A worker (process/worker.h) asks as many as answer within half of its share of time. One that has not answered when the
 * share is over is given up, and the next worker goes on after it: it costs its own answer and one share, not the others'.
 */
#ifndef FLEXGRAFT_PROCESS_ASK_H
#define FLEXGRAFT_PROCESS_ASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct ask {
        size_t count;
        void *argument; /* of the two functions */
        /* ask one of them, by its number, in a worker, which may be killed at any time */
        void (*one)(struct ask *ask, size_t index);
        /* note that one did not answer (ETIMEDOUT), that its worker was killed (ECANCELED), or that there was none; or NULL */
        void (*give_up)(struct ask *ask, size_t index, const struct error *error);
        int64_t share_ms;    /* a worker's time; give_up() may change it */
        int64_t deadline_ms; /* of all (clock_now_ms()'s clock) */
        bool without_fds;    /* worker_run_without_fds() */
        size_t next;         /* the one that is asked; give_up() may pass over those that follow */
        bool began;          /* the worker of now has asked one */
        int64_t until_ms;    /* with the next one another worker begins */
};

/*
 * ask_all() - begin with the first. Returns how many were asked or given up: all, or fewer when the deadline came, or when a
 * worker had no time to begin.
 */
size_t ask_all(struct ask *ask);

#endif
