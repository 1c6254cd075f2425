/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.h - the monotonic clock, for deadlines.
 */
#ifndef FLEXGRAFT_BASE_CLOCK_H
#define FLEXGRAFT_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* clock_now_ms() - milliseconds of CLOCK_MONOTONIC. */
static inline int64_t clock_now_ms(void)
{
        struct timespec now;

        (void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail for this clock */
        return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

#endif
