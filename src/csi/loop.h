/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop.h - the one event loop: descriptors that became ready, and times that have come. Nothing else waits.
 */
#ifndef FLEXGRAFT_CSI_LOOP_H
#define FLEXGRAFT_CSI_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* Part of what owns the descriptor. */
struct loop_source {
        int fd;
        uint32_t events; /* EPOLLIN, EPOLLOUT that are waited for */
        void (*ready)(struct loop_source *source, uint32_t events);
};

/* Part of what waits for the time. Zeroes: it is not set. */
struct loop_timer {
        int64_t due_ms; /* of clock_now_ms() */
        void (*fire)(struct loop_timer *timer);
        struct loop_timer *next, *previous;
        bool set;
};

/* loop_begin() - before the privileges are dropped. */
int loop_begin(struct error *error);

/* loop_add() - wait for these events of source->fd. Returns 0 or negative errno. */
int loop_add(struct loop_source *source, uint32_t events);

/* loop_wait_for() - wait for these events from now on. */
void loop_wait_for(struct loop_source *source, uint32_t events);

/* loop_remove() - before the descriptor is closed. */
void loop_remove(struct loop_source *source);

/* loop_set() - have fire(timer) called at that time, once; a timer that is set is moved. */
void loop_set(struct loop_timer *timer, int64_t due_ms, void (*fire)(struct loop_timer *timer));

/* loop_unset() - nothing if it is not set. */
void loop_unset(struct loop_timer *timer);

/*
 * loop_turn() - wait for one event or time, and do what belongs to it. One event a turn: what a function frees has no
 * event that is still to be looked at. Returns 0 or negative errno.
 */
int loop_turn(void);

#endif
