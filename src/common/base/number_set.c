/* SPDX-License-Identifier: Apache-2.0 */
#include "base/number_set.h"

#define NUMBER_SET_FULL (NUMBER_SET_MAX / 8 * 7) /* so many different ones: then there is no end of sorting */

static void swap(uint64_t *one, uint64_t *other)
{
        const uint64_t number = *one;

        *one = *other;
        *other = number;
}

static void sift(uint64_t *heap, size_t at, size_t count)
{
        for (size_t child; (child = 2 * at + 1) < count; at = child) {
                if (child + 1 < count && heap[child] < heap[child + 1])
                        child++;
                if (heap[at] >= heap[child])
                        return;
                swap(&heap[at], &heap[child]);
        }
}

/* In place: qsort() allocates, and asks the kernel how much memory there is (base/sort.h), which few programs may. */
static void sort(uint64_t *numbers, size_t count)
{
        for (size_t i = count / 2; i-- > 0;)
                sift(numbers, i, count);
        for (size_t end = count; end-- > 1;) {
                swap(&numbers[0], &numbers[end]);
                sift(numbers, 0, end);
        }
}

/* Each number is kept once. */
static void drop_doubles(struct number_set *set)
{
        size_t kept = 0;

        sort(set->numbers, set->count);
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
