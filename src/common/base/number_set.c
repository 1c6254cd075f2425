/* SPDX-License-Identifier: Apache-2.0 */
#include "base/number_set.h"

#include "base/sort.h"

#define NUMBER_SET_FULL (NUMBER_SET_MAX / 8 * 7) /* so many different ones: then there is no end of sorting */

static int compare(const void *one, const void *other, const void *context)
{
        const uint64_t *a = one;
        const uint64_t *b = other;

        (void)context;
        return (*a > *b) - (*a < *b);
}

/* Each number is kept once. */
static void drop_doubles(struct number_set *set)
{
        size_t kept = 0;

        sort_many(set->numbers, set->count, sizeof set->numbers[0], compare, NULL);
        for (size_t i = 0; i < set->count; i++)
                if (kept == 0 || set->numbers[kept - 1] != set->numbers[i])
                        set->numbers[kept++] = set->numbers[i];
        set->count = kept;
}

void number_set_add(struct number_set *set, uint64_t number)
{
        if (!number_set_is_whole(set) || (set->count > 0 && set->numbers[set->count - 1] == number))
                return;
        if (set->count == NUMBER_SET_MAX) {
                drop_doubles(set);
                if (set->count > NUMBER_SET_FULL) {
                        set->count = NUMBER_SET_MAX + 1;
                        return;
                }
        }
        set->numbers[set->count++] = number;
}

bool number_set_is_whole(const struct number_set *set)
{
        return set->count <= NUMBER_SET_MAX;
}

bool number_set_has(const struct number_set *set, uint64_t number)
{
        const size_t count = number_set_is_whole(set) ? set->count : NUMBER_SET_MAX;

        for (size_t i = 0; i < count; i++)
                if (set->numbers[i] == number)
                        return true;
        return false;
}
