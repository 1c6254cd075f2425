/* SPDX-License-Identifier: Apache-2.0 */
/*
 * number_set.h - a set of numbers with a fixed size, for a long series in which few numbers are repeated.
 */
#ifndef FLEXGRAFT_BASE_NUMBER_SET_H
#define FLEXGRAFT_BASE_NUMBER_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NUMBER_SET_MAX 131072 /* what is not used takes no memory */

/* Empty: count is 0; the numbers need not be zeroed. */
struct number_set {
        size_t count; /* some of them may be the same; above NUMBER_SET_MAX: they were too many */
        uint64_t numbers[NUMBER_SET_MAX];
};

void number_set_add(struct number_set *set, uint64_t number);

/* number_set_is_whole() - whether it has all numbers that were added: at most 7/8 of NUMBER_SET_MAX are different. */
bool number_set_is_whole(const struct number_set *set);

/* number_set_has() - whether a number is among those that it has. */
bool number_set_has(const struct number_set *set, uint64_t number);

#endif
