/* SPDX-License-Identifier: Apache-2.0 */
#include "loop.h"

#include <errno.h>
#include <stddef.h>
#include <sys/epoll.h>

#include "base/clock.h"

static int epoll_fd = -EBADF;
static struct loop_timer *timers;

int loop_begin(struct error *error)
{
        epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        return epoll_fd < 0 ? fail(error, errno, "epoll_create1", "the event loop") : 0;
}

int loop_add(struct loop_source *source, uint32_t events)
{
        struct epoll_event event = { .events = events, .data.ptr = source };

        source->events = events;
        return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, source->fd, &event) < 0 ? -errno : 0;
}

void loop_wait_for(struct loop_source *source, uint32_t events)
{
        struct epoll_event event = { .events = events, .data.ptr = source };

        if (source->events == events)
                return;
        source->events = events;
        (void)epoll_ctl(epoll_fd, EPOLL_CTL_MOD, source->fd, &event); /* cannot fail: it was added */
}

void loop_remove(struct loop_source *source)
{
        (void)epoll_ctl(epoll_fd, EPOLL_CTL_DEL, source->fd, NULL); /* likewise */
}

void loop_set(struct loop_timer *timer, int64_t due_ms, void (*fire)(struct loop_timer *timer))
{
        loop_unset(timer);
        *timer = (struct loop_timer){ .due_ms = due_ms, .fire = fire, .next = timers, .set = true };
        if (timers != NULL)
                timers->previous = timer;
        timers = timer;
}

void loop_unset(struct loop_timer *timer)
{
        if (!timer->set)
                return;
        if (timer->previous != NULL)
                timer->previous->next = timer->next;
        else
                timers = timer->next;
        if (timer->next != NULL)
                timer->next->previous = timer->previous;
        *timer = (struct loop_timer){};
}

static struct loop_timer *first_timer(void)
{
        struct loop_timer *first = timers;

        for (struct loop_timer *timer = timers; timer != NULL; timer = timer->next)
                if (timer->due_ms < first->due_ms)
                        first = timer;
        return first;
}

/* Milliseconds, at most a day: a longer wait is begun anew. */
static int time_left(const struct loop_timer *timer)
{
        const int64_t day_ms = (int64_t)24 * 3600 * 1000;
        int64_t left_ms = timer == NULL ? -1 : timer->due_ms - clock_now_ms();

        if (timer == NULL)
                return -1;
        return left_ms < 0 ? 0 : left_ms < day_ms ? (int)left_ms : (int)day_ms;
}

int loop_turn(void)
{
        struct loop_timer *timer = first_timer();
        struct epoll_event event;
        int wait_ms = time_left(timer);
        int count = epoll_wait(epoll_fd, &event, 1, wait_ms);

        if (count < 0)
                return errno == EINTR ? 0 : -errno;
        if (count > 0) {
                struct loop_source *source = event.data.ptr;

                source->ready(source, event.events);
                timer = first_timer(); /* others may be set now */
        }
        if (timer != NULL && timer->due_ms <= clock_now_ms()) {
                void (*fire)(struct loop_timer *) = timer->fire;

                loop_unset(timer);
                fire(timer);
        }
        return 0;
}
