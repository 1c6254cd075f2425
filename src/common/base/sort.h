/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sort.h - items into order, in place. Where qsort() cannot be used: it may allocate, and asks the kernel for the size of
 * the memory, which few filters allow.
 */
#ifndef FLEXGRAFT_BASE_SORT_H
#define FLEXGRAFT_BASE_SORT_H

#include <stddef.h>
#include <string.h>

/* Below, at or above 0, as strcmp(). */
typedef int sort_function(const void *one, const void *other, const void *context);

static inline void sort_swap(char *one, char *other, size_t size)
{
        char part[64];

        for (size_t at = 0; at < size; at += sizeof part) {
                size_t length = size - at < sizeof part ? size - at : sizeof part;

                memcpy(part, one + at, length);
                memcpy(one + at, other + at, length);
                memcpy(other + at, part, length);
        }
}

/* sort_few() - by insertion: those that are equal stay in their order. */
static inline void sort_few(void *items, size_t count, size_t size, sort_function *compare, const void *context)
{
        char *first = items;

        for (size_t i = 1; i < count; i++)
                for (char *at = first + i * size; at > first && compare(at - size, at, context) > 0; at -= size)
                        sort_swap(at - size, at, size);
}

static inline void sort_sift(char *heap, size_t at, size_t count, size_t size, sort_function *compare,
                             const void *context)
{
        for (size_t child; (child = 2 * at + 1) < count; at = child) {
                if (child + 1 < count && compare(heap + child * size, heap + (child + 1) * size, context) < 0)
                        child++;
                if (compare(heap + at * size, heap + child * size, context) >= 0)
                        return;
                sort_swap(heap + at * size, heap + child * size, size);
        }
}

/* sort_many() - with a heap: those that are equal come in any order. */
static inline void sort_many(void *items, size_t count, size_t size, sort_function *compare, const void *context)
{
        char *first = items;

        for (size_t i = count / 2; i-- > 0;)
                sort_sift(first, i, count, size, compare, context);
        for (size_t end = count; end-- > 1;) {
                sort_swap(first, first + end * size, size);
                sort_sift(first, 0, end, size, compare, context);
        }
}

#endif
