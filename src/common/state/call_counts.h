/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call_counts.h - how many calls of each program and verb succeeded and failed, and how long they took: one small file of
 * the state directory, with a row per program that was ever called. What a call costs does not depend on how many there were.
 *
 * A call is counted after its reply is written, and only if the state directory is there already. A process that is
 * killed leaves its own call uncounted, and nothing else. A lost file begins at 0 again, as counters of Prometheus may.
 */
#ifndef FLEXGRAFT_STATE_CALL_COUNTS_H
#define FLEXGRAFT_STATE_CALL_COUNTS_H

#include <stdint.h>

/* Calls that took at most so many seconds; longer ones are in no bucket. As text, with the end of the list. */
#define CALL_COUNTS_BUCKETS 6
#define CALL_COUNTS_BOUNDS                                                                                             \
        {                                                                                                              \
                "0.01", "0.1", "1", "10", "60", "600", "+Inf"                                                          \
        }

struct call_counts {
        char program[40]; /* its name; "": the row is free */
        uint64_t succeeded;
        uint64_t failed;
        uint64_t sum_us;
        uint64_t buckets[CALL_COUNTS_BUCKETS]; /* each call is in one */
        uint64_t last_success;                 /* in seconds since 1970; 0: none */
        uint64_t problems;                     /* of the last reply that had a list of them */
};

/*
 * call_counts_begin() - from now on, the reply of this process is counted (reply_observe()). state_dir: copied.
 * call_counts_never() - it never is: of a program that changes nothing, not even this.
 */
void call_counts_begin(const char *state_dir);
void call_counts_never(void);

/* call_counts_each() - call function() for every program that was called. No file, or one that cannot be read, has none. */
typedef void call_counts_function(const struct call_counts *counts, void *argument);
void call_counts_each(const char *state_dir, call_counts_function *function, void *argument);

#endif
