/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.h - the monotonic clock, for deadlines; the time of day, for people; short waits.
 */
#ifndef FLEXGRAFT_BASE_CLOCK_H
#define FLEXGRAFT_BASE_CLOCK_H

#include <poll.h>
#include <stdint.h>
#include <time.h>

/* clock_now_ms() - milliseconds of CLOCK_MONOTONIC. */
static inline int64_t clock_now_ms(void)
{
        struct timespec now;

        (void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail for this clock */
        return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/*
 * clock_after_ms() - that time of CLOCK_MONOTONIC, for pthread_cond_clockwait() and its like. What pthread_cond_timedwait() waits by is
 * set back by people and by NTP: a short wait would be as long as that.
 */
static inline struct timespec clock_after_ms(unsigned milliseconds)
{
        struct timespec time;

        (void)clock_gettime(CLOCK_MONOTONIC, &time); /* likewise */
        time.tv_sec += milliseconds / 1000;
        time.tv_nsec += milliseconds % 1000 * 1000000L;
        if (time.tv_nsec >= 1000000000L) {
                time.tv_nsec -= 1000000000L;
                time.tv_sec++;
        }
        return time;
}

/* clock_seconds() - since 1970, for people. */
static inline uint64_t clock_seconds(void)
{
        struct timespec now;

        (void)clock_gettime(CLOCK_REALTIME, &now); /* likewise */
        return (uint64_t)now.tv_sec;
}

/* clock_real_ns() - nanoseconds since 1970. */
static inline uint64_t clock_real_ns(void)
{
        struct timespec now;

        (void)clock_gettime(CLOCK_REALTIME, &now); /* likewise */
        return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* clock_pause_ms() - wait so long, or until a signal; by ppoll(), which every program may call. */
static inline void clock_pause_ms(unsigned milliseconds)
{
        const struct timespec pause = { .tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1000000L };

        (void)ppoll(NULL, 0, &pause, NULL);
}

#endif
