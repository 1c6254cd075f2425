/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nearest.h - the word of a list that somebody may have meant.
 */
#ifndef FLEXGRAFT_BASE_NEAREST_H
#define FLEXGRAFT_BASE_NEAREST_H

#include <stddef.h>

#define NEAREST_MAX 64 /* bytes of a word; a longer one is near nothing */

/*
 * nearest_distance() - how many letters are to be inserted, removed, replaced or exchanged with their neighbour, to make
 * one word of the other (the distance of Damerau and Levenshtein, where no part is changed twice). other: of less than
 * NEAREST_MAX bytes.
 */
size_t nearest_distance(const char *one, const char *other);

/* What is nearest so far: begin with zeroes and the word in question. */
struct nearest {
        const char *asked;
        char word[NEAREST_MAX];
        size_t distance;
};

/*
 * nearest_offer() - take this word if it is nearer than those before: fewer letters are to be inserted, removed,
 * replaced or exchanged with their neighbour; or the word goes on where the one in question ends.
 */
void nearest_offer(struct nearest *nearest, const char *word);

/* nearest_found() - the nearest word; NULL: all are too far away. */
const char *nearest_found(const struct nearest *nearest);

/* nearest_hint() - " (the nearest is WORD)", or "" if all are too far away. ret_hint: of NEAREST_HINT_MAX bytes. */
#define NEAREST_HINT_MAX (NEAREST_MAX + 24)
void nearest_hint(const struct nearest *nearest, char *ret_hint);

#endif
