/* SPDX-License-Identifier: Apache-2.0 */
#include "base/nearest.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

static size_t least(size_t one, size_t other)
{
        return one < other ? one : other;
}

size_t nearest_distance(const char *one, const char *other)
{
        size_t rows[3][NEAREST_MAX + 1];
        size_t m = strlen(other);

        for (size_t j = 0; j <= m; j++)
                rows[0][j] = j;
        for (size_t i = 1; one[i - 1] != '\0'; i++) {
                size_t *row = rows[i % 3];
                const size_t *above = rows[(i - 1) % 3];

                row[0] = i;
                for (size_t j = 1; j <= m; j++) {
                        row[j] = least(least(above[j], row[j - 1]) + 1,
                                       above[j - 1] + (one[i - 1] != other[j - 1] ? 1 : 0));
                        if (i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1])
                                row[j] = least(row[j], rows[(i - 2) % 3][j - 2] + 1);
                }
        }
        return rows[strlen(one) % 3][m];
}

void nearest_offer(struct nearest *nearest, const char *word)
{
        size_t length = strlen(nearest->asked);
        size_t distance;

        if (length >= NEAREST_MAX || strlen(word) >= NEAREST_MAX)
                return;
        distance = nearest_distance(nearest->asked, word);
        if (distance > 1 && length > 3 && text_starts(word, nearest->asked))
                distance = 1;
        if (distance > 2 || distance * 3 > length || (nearest->word[0] != '\0' && distance >= nearest->distance))
                return;
        nearest->distance = distance;
        (void)text_copy(nearest->word, sizeof nearest->word, word); /* as long as one can be */
}

const char *nearest_found(const struct nearest *nearest)
{
        return nearest->word[0] != '\0' ? nearest->word : NULL;
}

void nearest_hint(const struct nearest *nearest, char *ret_hint)
{
        ret_hint[0] = '\0';
        if (nearest_found(nearest) != NULL)
                (void)snprintf(ret_hint, NEAREST_HINT_MAX, " (the nearest is %s)", nearest->word);
}
